# SPDX-License-Identifier: BSD-3-Clause
# Turns a text into a C++ string literal: cmake -DINPUT=banyan-policy.toml -DOUTPUT=policy_text.inc -P embed.cmake
file(READ ${INPUT} text)
file(WRITE ${OUTPUT} "R\"policy(${text})policy\"\n")
