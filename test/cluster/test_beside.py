# SPDX-License-Identifier: BSD-3-Clause
"""banyan beside what sites have: other job_submit plugins, one of which sends jobs to all partitions, a SPANK plugin for containers before
it and one behind it, and PrologFlags=Contain,X11."""

import json
import subprocess

from harness import BUILD, ClusterCase, main

from banyan_cluster import installed

# As pyxis: an option of its own, and hooks of the job's user and of each task.
PLUGIN = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <slurm/slurm.h>
#include <slurm/spank.h>
#include <stddef.h>
#include <sys/mount.h>
SPANK_PLUGIN(NAME, 1)
static int take(int value, const char *text, int remote) { (void)value; (void)text; (void)remote; return 0; }
int slurm_spank_init(spank_t sp, int ac, char **av)
{
    struct spank_option option = {OPTION, "IMAGE", "the image of a container", 1, 0, take};
    (void)ac; (void)av;
    return spank_option_register(sp, &option);
}
int slurm_spank_user_init(spank_t sp, int ac, char **av)
{
    (void)ac; (void)av;
    return spank_setenv(sp, VARIABLE, "here", 1);
}
#ifdef HIDDEN  /* the container of a task lacks that folder, the script has it */
int slurm_spank_task_init(spank_t sp, int ac, char **av)
{
    unsigned step = 0;
    (void)ac; (void)av;
    if (spank_get_item(sp, S_JOB_STEPID, &step) != ESPANK_SUCCESS || step >= SLURM_MAX_NORMAL_STEP_ID)
        return 0;
    return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("none", HIDDEN, "tmpfs", 0, NULL);
}
#endif
"""


class Beside(ClusterCase):
    nodes = 6
    options = ("--group-size", 3, "--without", "fault", "--slurm-conf", "PrologFlags=Alloc,Contain,X11",
               "--slurm-conf", "ProctrackType=proctrack/pgid", "--slurm-conf",
               "JobSubmitPlugins=all_partitions,require_timelimit,banyan")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.tmp = cls.cluster.dir / "tmp"
        include = installed.slurm_of(BUILD) + "/usr/include"
        lines = []
        for number, hides in ((1, [f'-DHIDDEN="{cls.cluster.dir}/etc"']), (2, [])):
            source, plugin = cls.tmp / f"beside{number}.c", cls.tmp / f"beside{number}.so"
            source.write_text(PLUGIN)
            subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", f"-DNAME=beside{number}", f'-DOPTION="container-image{number}"',
                            f'-DVARIABLE="BESIDE{number}"', *hides, "-o", plugin, source], check=True)
            lines.append(f"required {plugin}\n")
        plugstack = cls.cluster.dir / "etc" / "plugstack.conf"
        plugstack.write_text(lines[0] + plugstack.read_text() + lines[1])
        cls.cluster.run("scontrol", "create", "PartitionName=shared", "Nodes=ALL", "OverSubscribe=NO", "State=UP", "MaxTime=INFINITE")

    def planned(self, job):
        """Nodes by rank."""
        allocation = self.cluster.hosts(self.cluster.job(job)["NodeList"])
        return json.loads(self.cluster.out("banyan-topo", "place", self.cluster.dir / "fabric.snapshot", "--shape", "tp=2,pp=2", "--nodes", 3,
                                           "--ranks-per-node", 2, "--spares", 1, "--free", ",".join(allocation), "--json"))["ranks"]

    def test_a_job_trains(self):
        job = self.cluster.sbatch("-N3", "--ntasks-per-node=2", "-t5", "--train-parallel=tp=2,pp=2", "--train-spares=1", "--container-image1=a",
                                  "--train-ckpt=every=1",
                                  script="banyan-run --container-image2=b sh -c 'echo rank $RANK $SLURMD_NODENAME $BESIDE1 $BESIDE2 "
                                         "${BANYAN_CKPT_SOCKET:+socket} ${BANYAN_CKPT_OFF:-on}'\n")
        self.cluster.wait_for_job(job)
        told = sorted(line.split()[1:] for line in self.cluster.output(job).splitlines() if line.startswith("rank "))
        self.assertEqual(told, [[str(rank), node, "here", "here", "socket", "on"] for rank, node in enumerate(self.planned(job))], self.cluster.output(job))
        self.assertIn("banyan: tp=2,pp=2 nodes=2 ranks=4", self.cluster.job(job)["AdminComment"])

    def test_what_another_plugin_refuses(self):
        done = self.cluster.run("sbatch", "-N3", "--ntasks-per-node=2", "--train-parallel=tp=2,pp=2", "--train-spares=1", "--wrap=true", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("time limit", (done.stdout + done.stderr).lower())


if __name__ == "__main__":
    main()
