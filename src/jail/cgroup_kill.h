/* cgroup_kill - ends the members of a group one by one: for kernels that have no cgroup.kill. */
#pragma once

/* `path` is how the group's path ends in /proc/PID/cgroup. */
void cgroup_kill_listed(int dir, const char *path);
void cgroup_kill_pause(void); /* 1 ms, while the kernel lets members die */
