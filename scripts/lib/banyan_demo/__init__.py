# SPDX-License-Identifier: BSD-3-Clause
"""scripts/demo: one training job through everything that banyan does, with the times that were measured on the way."""
