/* SPDX-License-Identifier: BSD-3-Clause */
/* The two types of CUDA's runtime that nccl.h names, for builds without CUDA: pointers, as in every release.
 */
#ifndef BANYAN_CUDA_TYPES_CUDA_RUNTIME_H
#define BANYAN_CUDA_TYPES_CUDA_RUNTIME_H
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
#endif
