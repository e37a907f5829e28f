/* SPDX-License-Identifier: BSD-3-Clause */
/* nccl.h includes it and takes nothing from it. */
