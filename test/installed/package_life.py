# SPDX-License-Identifier: BSD-3-Clause
"""The life of the packages on a copy of this host: installed, upgraded, kept where slurm.conf still names the plugins, removed,
purged. Each a script that runs in a chroot on an overlay of the host's root, with the packages in /packages."""

import shutil
import subprocess


def live(folder, packages, script):
    """Runs the script; what it printed where it failed, else nothing; None where no overlay can be mounted."""
    (folder / "packages").mkdir()
    for path in packages:
        shutil.copy(path, folder / "packages")
    for name in ("up", "root"):
        (folder / name).mkdir()
    (folder / "inside").write_text(COMMON + script)
    (folder / "enter").write_text(ENTER)
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", folder / "enter", folder],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400, check=False)
    if "CANNOT MOUNT" in done.stdout:
        return None
    return "" if done.returncode == 0 else f"ended with {done.returncode}\n{done.stdout}"


ENTER = r"""
set -euo pipefail
mount --make-rprivate /
mount -t tmpfs tmpfs "$1/up"
mkdir "$1/up/upper" "$1/up/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up/upper,workdir=$1/up/work" "$1/root" || { echo CANNOT MOUNT; exit 1; }
mkdir -p "$1/root/packages"
cp "$1"/packages/* "$1/inside" "$1/root/packages"
mount -t proc proc "$1/root/proc"
mount -t tmpfs tmpfs "$1/root/run"
chroot "$1/root" /bin/bash -euxo pipefail /packages/inside
"""

COMMON = r"""
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
rm -rf /etc/banyan /var/lib/banyan /var/log/banyan /etc/slurm
mkdir /etc/slurm
plugin=$(dirname "$(find /usr/lib* -name select_cons_tres.so | head -n 1)")/select_cons_tres_banyan.so

all_is_there() {
    [[ -d /var/lib/banyan && -d /var/log/banyan && -d /run/banyan && -f /etc/banyan/banyan.conf ]]
    local program
    for program in /usr/bin/banyan-{topo,run,ckpt,fault,doctor,sweep} /usr/libexec/banyan/banyan-{ckptd,faultd}; do
        "$program" --version | grep -E "^${program##*/} [0-9]+[.][0-9]+[.][0-9]+.*Slurm [0-9]"
    done
    /usr/libexec/banyan/banyan-ckptd --check-config
    /usr/libexec/banyan/banyan-faultd controller --check-config
    printf '#include <banyan/ckpt.h>\nint main(void) { return bck_init(0, 0, 1) == 0; }\n' >/tmp/saves.c
    gcc -o /tmp/saves /tmp/saves.c $(pkg-config --cflags --libs banyan-ckpt)
    /tmp/saves
}

# refused COMMAND...: it fails, says why and how to do it all the same, and the plugins are still there.
refused() {
    if "$@" >/tmp/said 2>&1; then cat /tmp/said; return 1; fi
    grep -q 'still named by /etc/slurm/slurm.conf:1: SelectType=select/cons_tres_banyan' /tmp/said
    grep -q 'BANYAN_REMOVE_ANYWAY=yes' /tmp/said
    [[ -e $plugin ]]
}

# Slurm of the site is in use, and names the plugins.
named() { echo 'SelectType=select/cons_tres_banyan' >/etc/slurm/slurm.conf; }
not_named() { echo 'SelectType=select/cons_tres' >/etc/slurm/slurm.conf; }

nothing_is_left() {
    [[ -z $(find / -xdev -name '*banyan*' -newer /packages/inside -not -path '/proc/*' -not -path '/packages/*' -not -path '/tmp/*' \
        -not -path '/work/*' -not -path '/var/lib/dpkg/*' -print -quit) ]]
}
"""

DEBIAN = r"""
remove=(libbanyan-ckpt-dev banyan-slurm-plugins banyan-faultd banyan-ckptd banyan-tools libbanyan-ckpt)
dpkg -i /packages/*.deb
all_is_there
# What the admin wrote survives an upgrade and a removal.
echo '# mine' >>/etc/banyan/banyan.conf
touch /var/lib/banyan/fabric.snapshot /var/lib/banyan/incidents.db /var/log/banyan/ckptd.log
named
dpkg -i /packages/*.deb
grep -q '^# mine' /etc/banyan/banyan.conf
refused dpkg -r banyan-slurm-plugins
refused dpkg -P banyan-slurm-plugins
[[ $(dpkg-query -f '${db:Status-Abbrev}' -W banyan-slurm-plugins) == ?i* ]]
BANYAN_REMOVE_ANYWAY=yes dpkg -r banyan-slurm-plugins
[[ ! -e $plugin ]]
dpkg -i /packages/banyan-slurm-plugins*.deb
not_named
dpkg -r "${remove[@]}"
grep -q '^# mine' /etc/banyan/banyan.conf
[[ -e /var/lib/banyan/incidents.db && ! -e /usr/bin/banyan-topo && ! -e /usr/libexec/banyan ]]
dpkg -P "${remove[@]:1}"
[[ ! -e /etc/banyan && ! -e /var/lib/banyan && ! -e /var/log/banyan && ! -e /etc/logrotate.d/banyan-ckptd ]]
nothing_is_left
"""

# What they depend on goes by the names of another distribution.
RPM = r"""
rm -rf /var/lib/rpm
on_debian=$(command rpm --force-debian --version >/dev/null 2>&1 && echo --force-debian || :)  # Debian 13's asks for it no more
rpm() { command rpm $on_debian --nodeps "$@"; }
names=$(command rpm -qp --qf '%{NAME}\n' /packages/*.rpm)
rpm -Uvh /packages/*.rpm
all_is_there
echo '# mine' >>/etc/banyan/banyan.conf
touch /var/log/banyan/ckptd.log
named
rpm -Uvh --replacepkgs --replacefiles /packages/*.rpm
grep -q '^# mine' /etc/banyan/banyan.conf
[[ -e $plugin ]]
refused rpm -e banyan-slurm-plugins
command rpm -q banyan-slurm-plugins
BANYAN_REMOVE_ANYWAY=yes rpm -e banyan-slurm-plugins
[[ ! -e $plugin ]]
rpm -Uvh /packages/banyan-slurm-plugins*.rpm
not_named
rpm -e $names
[[ ! -e $plugin && ! -e /usr/bin/banyan-topo && ! -e /usr/libexec/banyan/banyan-ckptd ]]
grep -q '^# mine' /etc/banyan/banyan.conf.rpmsave
"""
