/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * privileges.c - a daemon that root has started opens its devices, and then becomes --user.
 *
 * Called by main() alone, before the control thread starts. The run directory belongs to the user
 * from the start, so root never follows a name that the user could have changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log.h"
#include "privileges.h"
#include "rundir.h"

void privileges_freeze(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_error("no_new_privs: %s; the daemon goes on without it", strerror(errno));
}

static bool changes_user(const struct options *o)
{
	return o->set.has_user && o->set.uid != geteuid();
}

static int failed(const struct options *o, const char *what)
{
	int err = errno;

	log_error("--user: cannot %s uid %u: %s; start the daemon as root or as that user", what,
		  (unsigned)o->set.uid, strerror(err));
	return -err;
}

/* Makes the run directory for the user. An existing directory is not changed. */
static int run_dir_make(const struct options *o)
{
	int dir = -1, err = mkdir(o->set.run_dir, 0755) < 0 ? errno : 0;

	if (err == EEXIST)
		return 0;
	if (err == 0) {
		dir = open(o->set.run_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		err = dir < 0 || fchown(dir, o->set.uid, o->set.gid) < 0 ? errno : 0;
	}
	if (err != 0)
		log_error("run directory %s: cannot make it for uid %u: %s; make it yourself, as "
			  "that user, or give another one with --run-dir",
			  o->set.run_dir, (unsigned)o->set.uid, strerror(err));
	if (dir >= 0)
		close(dir);
	return -err;
}

int privileges_lend(const struct options *o)
{
	if (!changes_user(o) || (setegid(o->set.gid) == 0 && seteuid(o->set.uid) == 0))
		return 0;
	return failed(o, "become");
}

int privileges_return(const struct options *o)
{
	/* The real user and group are still those that started the daemon. */
	if (!o->set.has_user || (seteuid(getuid()) == 0 && setegid(getgid()) == 0))
		return 0;
	return failed(o, "return from");
}

int privileges_take_run_dir(const struct options *o)
{
	int lock, rc;

	if (!changes_user(o))
		return rundir_take(o->set.run_dir);
	if (geteuid() != 0) {
		errno = EPERM;
		return failed(o, "become");
	}
	rc = run_dir_make(o);
	if (rc == 0)
		rc = privileges_lend(o);
	if (rc < 0)
		return rc;
	lock = rundir_take(o->set.run_dir);
	rc = privileges_return(o);
	return rc < 0 ? rc : lock;
}

int privileges_drop(const struct options *o)
{
	/* To give the sockets to --group, the daemon must be a member. */
	gid_t groups[] = { o->set.gid, o->set.group };
	size_t n = o->set.group == (gid_t)-1 ? 1 : 2;

	if (!changes_user(o))
		return 0;
	if (setgroups(n, groups) < 0 || setresgid(o->set.gid, o->set.gid, o->set.gid) < 0 ||
	    setresuid(o->set.uid, o->set.uid, o->set.uid) < 0)
		return failed(o, "become");
	return 0;
}
