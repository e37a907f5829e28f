#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Before the plugins are removed: prerm of the Debian package, preun of the RPM.
set -e
[ "$1" = "@REMOVAL@" ] || exit 0

# Whether Slurm would still look for the plugins: then they stay, since neither slurmctld nor a command of Slurm starts without
# a plugin that slurm.conf names. No daemon of Slurm's is touched here. What could not be looked at is said, and is a reason to stay
# where Slurm is in use.

# Records of a configuration file, one a line, as Slurm reads it (keys in any case, several on a line, comments, continued lines):
# "names FILE:LINE: KEY=VALUE", "include FILE", "cluster NAME", "plugstack FILE".
read_slurm_conf() {
    awk -v file="$1" '
    function judge(text,    low, pair, key, value, n, i, word) {
        low = tolower(text)
        if (match(low, /^[ \t]*include[ \t]+/)) {
            text = substr(text, RLENGTH + 1); sub(/[ \t]+$/, "", text); print "include " text; return
        }
        while (match(low, /[a-z0-9_.]+[ \t]*[-*+\/]?=[ \t]*("[^"]*"|[^ \t"]+)/)) {
            pair = substr(low, RSTART, RLENGTH); value = substr(text, RSTART, RLENGTH)
            text = substr(text, RSTART + RLENGTH); low = substr(low, RSTART + RLENGTH)
            key = pair; sub(/[ \t]*[-*+\/]?=.*/, "", key)
            sub(/^[^=]*=[ \t]*/, "", value); gsub(/"/, "", value)
            if (key == "clustername") print "cluster " tolower(value)
            if (key == "plugstackconfig") print "plugstack " value
            if (key == "selecttype" && tolower(value) ~ /^(select\/)?cons_tres_banyan$/) print "names " file ":" begin ": SelectType=" value
            if (key == "jobsubmitplugins") {
                n = split(tolower(value), word, ",")
                for (i = 1; i <= n; i++)
                    if (word[i] ~ /^[ \t]*(job_submit\/)?banyan[ \t]*$/) print "names " file ":" begin ": JobSubmitPlugins=" value
            }
        }
    }
    {
        sub(/\r$/, "")
        if (match($0, /(^|[^\\])#/)) $0 = substr($0, 1, RSTART + RLENGTH - 2)
        if (whole == "") begin = NR
        if ($0 ~ /\\[ \t]*$/) { sub(/\\[ \t]*$/, ""); whole = whole $0; next }
        judge(whole $0); whole = ""
    }
    END { if (whole != "") judge(whole) }' "$1"
}

# "required FILE" where plugstack.conf, or a file that it includes, has our line as required: no job runs without the file then.
# "optional FILE" costs a line of Slurm's at each srun.
look_in_plugstack() (
    [ -f "$1" ] && [ -r "$1" ] && [ "$2" -lt 8 ] || exit 0
    awk '{ sub(/#.*/, "") } $1 == "include" { print "include " $2 } $2 ~ /(^|\/)spank_banyan[.]so$/ { print $1 }' "$1" |
    while read -r word pattern; do
        case $word in
        include)
            case $pattern in /*) ;; *) pattern=$(dirname "$1")/$pattern ;; esac
            for other in $pattern; do look_in_plugstack "$other" $(($2 + 1)); done ;;
        *) echo "$word $1" ;;
        esac
    done
)

# All of these records of FILE and of what it includes, and "lost FILE" for one that cannot be read. Below the folder of slurm.conf.
look_in() (
    [ "$2" -lt 8 ] || exit 0
    if [ ! -f "$1" ] || [ ! -r "$1" ]; then echo "lost $1"; exit 0; fi
    read_slurm_conf "$1" | while read -r word rest; do
        case $word in
        include)
            case $rest in /*) ;; *) rest=$3/$rest ;; esac
            case $rest in
            *%c*) cluster=$(read_slurm_conf "$3/slurm.conf" | sed -n 's/^cluster //p' | tail -n 1)
                rest=$(printf '%s\n' "$rest" | sed "s|%c|$cluster|g") ;;
            esac
            look_in "$rest" $(($2 + 1)) "$3" ;;
        plugstack) look_in_plugstack "$rest" 0 ;;
        names) echo "$word $rest" ;;
        esac
    done
)

# The folders in /proc of this host's slurmctld and slurmd; those of containers have files of their own. They run as root or as a
# user of the system's: whatever else bears their name could lead us to any file.
daemons() {
    for process in /proc/[0-9]*; do
        case $(cat "$process/comm" 2>/dev/null) in
        slurmctld | slurmd)
            [ "$(readlink "$process/ns/pid")" = "$(readlink /proc/self/ns/pid)" ] || continue
            [ "$(stat -c %u "$process" 2>/dev/null || echo 65534)" -ge 1000 ] || echo "$process"
            ;;
        esac
    done
}

# Every slurm.conf that may be in force on this host: by the daemons that run, their defaults, what users' shells are told (a login
# host has no daemon), and Slurm's own places, with the copy that a node without a slurm.conf of its own got from slurmctld.
configurations() {
    [ -z "${SLURM_CONF:-}" ] || echo "$SLURM_CONF"
    for process in $(daemons); do
        { tr '\0' '\n' <"$process/cmdline" | awk 'next_one { print; next_one = 0 } $0 == "-f" { next_one = 1 } /^-f./ { print substr($0, 3) }'
          tr '\0' '\n' <"$process/environ" | sed -n 's/^SLURM_CONF=//p'; } 2>/dev/null
    done
    sed -n 's/^[A-Z_]*OPTIONS=.*-f *\([^ "'\'']*\).*/\1/p; s/^SLURM_CONF=["'\'']*\([^"'\'']*\).*/\1/p' \
        /etc/default/slurmctld /etc/default/slurmd /etc/sysconfig/slurmctld /etc/sysconfig/slurmd 2>/dev/null || :
    sed -n 's/^\([^#]*[ ;]\)\{0,1\}SLURM_CONF=["'\'']*\(\/[^"'\'' ;$]*\).*/\2/p' /etc/environment /etc/profile /etc/profile.d/*.sh 2>/dev/null |
        while read -r file; do [ ! -e "$file" ] || echo "$file"; done
    for place in /etc/slurm "@SLURM_ETC@" /run/slurm/conf; do
        [ ! -e "$place/slurm.conf" ] || echo "$place/slurm.conf"
    done
}

plugins_stay() {
    found=$(configurations | awk 'NF && !seen[$0]++')
    if [ -n "$found" ]; then
        printf '%s\n' "$found" | while read -r file; do
            look_in "$file" 0 "$(dirname "$file")"
            look_in_plugstack "$(dirname "$file")/plugstack.conf" 0
        done
        return
    fi
    # Commands of Slurm may find slurmctld by DNS.
    told=$(timeout 20 scontrol show config 2>/dev/null | sed -n 's/^\(SelectType\|JobSubmitPlugins\) *= */\1=/p')
    if [ -n "$told" ]; then
        printf '%s\n' "$told" | grep -E '^SelectType=select/cons_tres_banyan$|^JobSubmitPlugins=(.*[,/])?banyan(,|$)' |
            sed 's/^/names slurmctld: /'
        return
    fi
    for process in $(daemons); do
        echo "lost the slurm.conf of $(cat "$process/comm"), process ${process#/proc/},"
        return
    done
    echo none
}

said=$(plugins_stay | awk '!seen[$0]++')
tell() { printf '%s\n' "$@" >&2; }
case $said in
none)
    tell "banyan-slurm-plugins: no slurm.conf was found on this host and no slurmctld answers: whether one names the plugins was not" \
        "  looked at. Where one does, set SelectType=select/cons_tres and take banyan out of JobSubmitPlugins."
    ;;
esac
if printf '%s\n' "$said" | grep -q '^optional '; then
    tell "banyan-slurm-plugins: each srun complains until the line of spank_banyan.so is gone from" \
        "$(printf '%s\n' "$said" | sed -n 's/^optional /  /p')"
fi
if printf '%s\n' "$said" | grep -qE '^(names|lost|required) '; then
    tell "$(printf '%s\n' "$said" | sed -n \
        's/^names /banyan-slurm-plugins: still named by /p
         s/^required \(.*\)/banyan-slurm-plugins: no job runs without spank_banyan.so, which is required by \1/p
         s/^lost \(.*\)/banyan-slurm-plugins: could not look whether the plugins are still named: \1 cannot be read/p')"
    if [ "${BANYAN_REMOVE_ANYWAY:-}" = yes ]; then
        tell "banyan-slurm-plugins: removed all the same, as BANYAN_REMOVE_ANYWAY=yes says"
    else
        tell "banyan-slurm-plugins: NOT removed, since neither slurmctld nor a command of Slurm would start. On every host set" \
            "  SelectType=select/cons_tres, take banyan out of JobSubmitPlugins and plugstack.conf, restart slurmctld and slurmd, and" \
            "  remove the package again (\"Removal\" in /usr/share/doc/banyan/upgrade.md). To remove it all the same, as root:" \
            "  BANYAN_REMOVE_ANYWAY=yes @REMOVE@ banyan-slurm-plugins"
        exit 1
    fi
fi
