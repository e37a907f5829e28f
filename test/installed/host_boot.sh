#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# host_boot.sh FOLDER BASE NAME [ARGUMENT...]: one host for a test. A systemd with these arguments as process 1 of its own namespaces,
# on a Debian of its own: an overlay of the folder BASE, which FOLDER/prepare may change before. Called by unshare with new mount,
# process, cgroup, network, IPC and UTS namespaces; ends with them.
set -euo pipefail
folder=$1 base=$2 name=$3
shift 3
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder/up"
mkdir "$folder/up/upper" "$folder/up/work"
mount -t overlay overlay -o "lowerdir=$base,upperdir=$folder/up/upper,workdir=$folder/up/work" "$folder/root"
cd "$folder/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
for device in null zero full random urandom tty kmsg; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t devpts devpts dev/pts
mount -t tmpfs tmpfs dev/shm
mount --bind "$folder/console" "$(touch dev/console && echo dev/console)"
# What the hosts share, as by a file system of the site: the home folders, and files of the test.
if [[ -d $folder/../shared ]]; then
    mkdir -p site
    mount --bind "$folder/../shared" site
    mount --bind "$folder/../shared/home" home
    cp "$folder/../hosts" etc/hosts
fi
hostname "$name"
echo "$name" >etc/hostname
[[ ! -e $folder/prepare ]] || bash -eu "$folder/prepare"
ip link set lo up
exec chroot . env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=console SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 "$@"
