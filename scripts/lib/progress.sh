# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# How the scripts show a long step: a spinner with seconds on a terminal, one line per step elsewhere.

# fail SENTENCE: the one sentence that the user reads.
fail() {
    printf '%s: %s\n' "${BANYAN_SCRIPT:-banyan}" "$1" >&2
    exit 1
}

# step LOG TITLE COMMAND...: runs COMMAND with its output appended to LOG; returns its status.
step() {
    local log=$1 title=$2 start=$SECONDS status=0 pid i=0 marks="|/-\\"
    shift 2
    if [[ ! -t 1 ]]; then
        printf '  %s ...\n' "$title"
        ("$@") >>"$log" 2>&1 </dev/null || status=$?
        printf '  %s: %s, %d s\n' "$title" "$(outcome $status)" $((SECONDS - start))
        return $status
    fi
    "$@" >>"$log" 2>&1 </dev/null &
    pid=$!
    while kill -0 "$pid" 2>/dev/null; do
        printf '\r  %s %s %d s ' "${marks:i++%4:1}" "$title" $((SECONDS - start))
        sleep 0.2
    done
    wait "$pid" || status=$?
    printf '\r    %s: %s, %d s \n' "$title" "$(outcome $status)" $((SECONDS - start))
    return $status
}

outcome() { if [[ $1 == 0 ]]; then echo "done"; else echo "failed"; fi; }

# step_with_ticks LOG TITLE COMMAND...: as step on a log, with a line of what the command printed last every half a minute.
step_with_ticks() {
    local log=$1 title=$2 start=$SECONDS status=0 pid
    shift 2
    printf '  %s ...\n' "$title"
    "$@" >>"$log" 2>&1 </dev/null &
    pid=$!
    local next=$((start + 30))
    while kill -0 "$pid" 2>/dev/null; do
        if ((SECONDS >= next)); then
            printf '    %d s: %s\n' $((SECONDS - start)) "$(tail -n 1 "$log" | cut -c 1-100)"
            next=$((SECONDS + 30))
        fi
        sleep 0.2
    done
    wait "$pid" || status=$?
    printf '  %s: %s, %d s\n' "$title" "$(outcome $status)" $((SECONDS - start))
    return $status
}
