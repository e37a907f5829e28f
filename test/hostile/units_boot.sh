#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# units_boot.sh FOLDER: a systemd as process 1 of its own namespaces, on an overlay of this host's root, for test_units.py. Called
# by unshare with new mount, process, cgroup, network, IPC and UTS namespaces; ends with them.
set -euo pipefail
folder=$1
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder/up"
mkdir "$folder/up/upper" "$folder/up/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/up/upper,workdir=$folder/up/work" "$folder/root"
cd "$folder/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
for device in null zero full random urandom kmsg tty; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mkdir dev/pts dev/shm
mount -t tmpfs tmpfs dev/shm
mount --bind "$folder/console" "$(touch dev/console && echo dev/console)"
hostname n01
ip link set lo up
printf '[Unit]\nDescription=Nothing but what a test starts\nDefaultDependencies=no\n' >etc/systemd/system/bare.target
# The daemons' logs go to files: no journal runs here.
mkdir -p etc/systemd/system.conf.d
printf '[Manager]\nDefaultStandardOutput=null\n' >etc/systemd/system.conf.d/test.conf
exec chroot . env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=bare.target --log-target=console
