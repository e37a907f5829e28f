# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Completions of banyan's programs, out of what each says to --help: they cannot differ from it.

_banyan_commands() {
    sed -n '/^Subcommands:/,/^[^ ]*$/s/^  \([a-z][a-z-]*\)  .*/\1/p'
}

_banyan() {
    local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} word help commands command=() words
    help=$("$program" --help 2>/dev/null) || return
    commands=$(_banyan_commands <<<"$help")
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        if [[ -n $word ]] && grep -qxF -e "$word" <<<"$commands"; then
            command+=("$word")
            help=$("$program" "${command[@]}" --help 2>/dev/null) || return
            commands=$(_banyan_commands <<<"$help")
        fi
    done
    case $current in
    -*) words=$(grep -oE '^  -.*' <<<"$help" | sed 's/  *[^ ,-].*//' | grep -oE -e '--?[A-Za-z][A-Za-z-]*') ;;
    *) words=$commands ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}

complete -o default -F _banyan banyan-topo banyan-ckpt banyan-fault banyan-run banyan-doctor banyan-sweep banyan-ckptd banyan-faultd
