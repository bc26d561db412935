/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * internal.h - what the files of the host library share.
 *
 * Names that these files share begin with nblib_, so that the static library claims no other names
 * of a program.
 */
#ifndef NBAR_INTERNAL_H
#define NBAR_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "nbar_extra.h"
#include "nbar_hostnic.h"
#include "nbar_rdma.h"
#include "order.h"

/* error.c: keeps the text for nbar_error() and returns err, a negative errno. */
int nblib_fail(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Converts the status of a reply (-NBAR_E*) into a negative errno; an unknown status: -EPROTO. */
int nblib_errno(int32_t status);

/* version.c: copies a struct of the program's version (`theirs` bytes) to our version. least: bytes
 * of the struct in the first version, which a program with struct_size 0 has. */
int nblib_struct_read(const char *name, void *to, size_t ours, size_t least, const void *from,
		      uint32_t theirs);

/* Bytes of struct nbar_group_attr in version 0.1. */
#define NBLIB_ATTR_LEAST (offsetof(struct nbar_group_attr, plan_length) + sizeof(size_t))

/* --- link.c, link_open.c, link_call.c: the control socket --------------------------------- */

enum nblib_down { NBLIB_UP, NBLIB_GONE, NBLIB_FORKED };

/* A request that got no reply in time. */
struct nblib_late {
	uint32_t seq;
	enum nbar_op op;
	uint32_t cell; /* GROUP_ATTACH: cell of the group */
};

#define NBLIB_LATE_MAX 64u

struct nblib_link {
	int sock;
	pthread_mutex_t lock; /* for one request at a time; protects the next four fields */
	uint32_t seq;         /* of the last request */
	uint32_t nlate;       /* number of replies that are still to come */
	struct nblib_late late[NBLIB_LATE_MAX];
	bool overdue;              /* a wait for such a reply has timed out: the NIC is slow */
	uint32_t down;             /* enum nblib_down; by order.h */
	bool in_process;           /* an in-process NIC, of this or another process */
	struct nbar_hostnic *host; /* the NIC, if it is in this process; else NULL */
	const struct nbar_hostnic_ops *ops;
	struct nbar_rdma *remote;    /* a remote NIC; else NULL */
	struct nbar_rdma_link *page; /* of the port of a remote NIC; NULL: of another process */
	const struct nbar_rdma_ops *rdma;
	/* Of a remote NIC, else -1: the memory of the page, and the ends of the pipe of asks. */
	int page_fd, asks[2];
	/* Of a remote NIC: the process that has the connection, and its files, as in nbar_share. */
	struct {
		uint32_t pid, page, asks;
		uint64_t inode;
	} opener;
	bool attached;      /* to a port of another process, at a remote NIC */
	uint32_t shared;    /* others may be attached; by order.h */
	uint32_t socket_id; /* other processes find the NIC by it; 0: none, or a daemon's NIC */
	char nic[NBAR_NAME_MAX];
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

struct nblib_call {
	enum nbar_op op;
	struct iovec body[2]; /* of the request */
	struct iovec fixed;   /* of the reply: the part that must be complete */
	struct iovec rest;    /* of the reply: room for the variable part, which had nrest bytes */
	size_t nrest;
	uint32_t patience_ms; /* how long the reply may take; 0: as long as any */
	uint32_t seq;         /* set by the call */
	bool unanswered;      /* no reply came in time; the NIC may still carry out the request */
	int *fd;              /* NULL, or where descriptors go; -1 for each that did not come */
	uint32_t nfd;         /* room in fd; 0: for one */
};

/* Connects to the NIC of this name (see nbar_open). *port: the port, if the name contains a port.
 * socket_id, for an in-process NIC: NBLIB_SOCKET_ID_MAKE: create the NIC if it is absent; 0: the
 * NIC must exist; else: the socket id of a shared NIC. */
#define NBLIB_SOCKET_ID_MAKE UINT32_MAX
int nblib_link_open(struct nblib_link *l, const char *name, uint32_t socket_id, uint32_t *port);
void nblib_link_close(struct nblib_link *l);

/* Waits until the daemon has seen the end and freed the port, then closes the link. */
void nblib_link_end(struct nblib_link *l);

/* link_call.c: sends a request and takes the reply. 0, or a negative errno and a text, from this
 * library or from the NIC. -ETIME: no reply in time; other requests can still succeed. */
int nblib_link_call(struct nblib_link *l, struct nblib_call *call);

/* Sends a request and returns at once; the reply is dropped. -EAGAIN: the socket is full, try
 * again. */
int nblib_link_start(struct nblib_link *l, struct nblib_call *call);

/* Sets how long the socket waits for the other end. 0: as long as any request may. */
void nblib_link_limit(const struct nblib_link *l, uint32_t ms);

/* Makes the socket, with this time limit, and connects it to the address. 0 or an errno. */
int nblib_link_reach(struct nblib_link *l, const struct sockaddr_un *to, size_t size);

/* A word for messages: what a user must start again after the NIC has ended. */
const char *nblib_link_server(const struct nblib_link *l);
/* The process at the other end of the control socket, as this PID namespace numbers it; 0: not
 * known. */
uint32_t nblib_link_pid(const struct nblib_link *l);

/* True if the daemon has closed its end, now or in an earlier check. Makes a system call. */
bool nblib_link_look(struct nblib_link *l);

/* Wakes a NIC that sleeps. */
void nblib_link_kick(const struct nblib_link *l);

/* -ENETDOWN, and a text with the reason. */
int nblib_link_lost(const struct nblib_link *l);

/* --- host.c: in-process NICs ----------------------------------------------------------------- */

#define NBLIB_HOST_PREFIX "host:"

/* Sets host, ops, socket_id and sock of the link. If another process has the NIC, host stays
 * NULL. */
int nblib_host_connect(struct nblib_link *l, const char *name, uint32_t socket_id);
void nblib_host_close(struct nblib_link *l);

/* Runs a pass of an in-process NIC. While its host computes, the NIC gets few other passes. */
void nblib_host_poll(const struct nblib_link *l);

/* --- remote.c: NICs that share no memory with this host ------------------------------------- */

/* Sets remote, rdma and sock of the link. name: up to the name of the NIC, which is in l->nic. */
int nblib_remote_connect(struct nblib_link *l, const char *name);
void nblib_remote_close(struct nblib_link *l);

/* Makes the host's copy of the page of a new port. */
int nblib_remote_page(struct nbar_port *port);

/* Attaches to the port of a share: opens the pipe of asks for the link, and returns a descriptor of
 * the memory of the page, for the caller to close. */
int nblib_remote_share(struct nblib_link *l, const struct nbar_share *share);

/* A socket for polling, g->events; its other end is shut down when the link has ended. */
int nblib_remote_events(struct nbar_group *g);
void nblib_remote_events_end(struct nbar_group *g);

/* As nblib_start. */
void nblib_remote_rang(const struct nbar_group *g, uint32_t posted, bool sleeps);

/* Pushes n bytes that this host has written into the page. */
void nblib_remote_push(struct nbar_port *port, const void *at, size_t n);

/* Waits until this host's copy of the page has all that the NIC wrote before its reply to request
 * `seq`. 0, or the link is lost. */
int nblib_remote_await(struct nbar_port *port, uint32_t seq);

/* Waits until all pushes have arrived, or the link is lost. */
void nblib_remote_settle(struct nbar_port *port);

/* --- open.c: ports ------------------------------------------------------------------------- */

struct nbar_port {
	struct nblib_link link;
	uint32_t number;
	uint64_t secret[2];
	struct nbar_page *page;
	/* A NIC in the kernel's network path has its results in a place of its own, and hears
	 * of posts through a socket. */
	struct nbar_results *results; /* NULL: in the page */
	bool has_start;
	int start;
	struct nbar_port *next; /* all ports of the process, for fork */
	/* remote.c: groups with a descriptor. The library's thread walks the list, under the lock.
	 */
	struct nbar_group *polled;
	pthread_mutex_t polled_lock;
	uint32_t sends_put, sends_taken;           /* sends_taken: as this host last read it */
	uint32_t recvs_taken, recvs_told;          /* recvs_told: as this host last published it */
	struct nbar_group *group[NBAR_GROUPS_MAX]; /* by cell */
};

static inline void nblib_poll(const struct nbar_port *port)
{
	if (port->link.host)
		nblib_host_poll(&port->link);
}

/* Called after a post: runs an in-process NIC, and wakes another NIC if it sleeps. */
static inline void nblib_posted(const struct nbar_port *port)
{
	if (port->link.host)
		nblib_host_poll(&port->link);
	else if (order_kick_wanted(&port->page->kick))
		nblib_link_kick(&port->link);
}

/* link.c: tells the NIC through the start socket. */
void nblib_start(const struct nbar_group *g, uint32_t posted, bool sleeps);

/* --- group.c ------------------------------------------------------------------------------- */

/* Each group has its own cache lines, because different threads use different groups. */
struct nbar_group {
	_Alignas(128) struct nbar_port *port;
	struct nbar_doorbell *doorbell;
	struct nbar_completion *completion;
	struct nbar_value_place *values; /* NBAR_VALUES_AHEAD of them; NULL: it carries none */
	uint64_t posted;                 /* the lower half is the epoch; by order.h */
	bool connected, is_signal;
	bool unsure;         /* a request to connect got no reply */
	bool attached;       /* another process has opened the group */
	uint32_t runs;       /* connected, not a "signal" group, not aborted; by order.h */
	uint32_t aborted;    /* by order.h */
	uint32_t abort_sent; /* the NIC knows of the abort; by order.h */
	int events;          /* event.c: readable after each wake; -1: none */
	/* remote.c: the other end of this socket, or -1; and the next group of port->polled */
	int events_end;
	struct nbar_group *next_polled;
	struct nbar_endpoint endpoint;
	uint32_t cell, rank, size;
	uint32_t npeer, nconnected;
	uint32_t value_max, values_index, fast_value;
	uint32_t *peer; /* ranks */
	struct nbar_wait_policy wait;
	uint64_t yields, sleeps; /* by order.h */
	/* why.c, by order.h: the NIC's sign of life when a thread last looked; the time of this
	 * look; for how long the sign has not changed while threads looked */
	uint64_t life, life_looked, life_mute;
	uint32_t silent_state; /* reach.c: of the next field; by order.h */
	char silent[72];       /* " (ADDRESS)" of the NIC that has fallen silent */
};

/* Called after the doorbell was written: with a post, or with a request for a wake. */
static inline void nblib_rang(const struct nbar_group *g, uint32_t posted, bool sleeps)
{
	if (g->port->has_start)
		nblib_start(g, posted, sleeps);
	else if (!sleeps)
		nblib_posted(g->port);
}

/* The futex of a group. It stays in the page, because a thread cannot sleep on other memory of a
 * NIC. */
static inline const uint32_t *nblib_futex(const struct nbar_group *g)
{
	return g->port->results ? &g->port->page->completion[g->cell].wake : &g->completion->wake;
}

/* --- signal.c ------------------------------------------------------------------------------ */

/* Called for a new group: drops messages that came for an earlier group of the same cell. */
void nblib_signal_drop(struct nbar_port *port, uint32_t cell);

/* --- barrier.c ----------------------------------------------------------------------------- */

/* Returns the error for tickets beyond the completion word, which cannot complete: the group is
 * aborted, or the word has a status other than OK, or the link is lost. */
int nblib_group_failed(struct nbar_group *g, uint64_t word);

/* The errors of a barrier that cannot be posted, by a member and by a process of a team: name the
 * reason. */
int nblib_post_refused(struct nbar_group *g, uint64_t word);
int nblib_procs_refused(struct nbar_group *g, uint64_t word);

/* True if a member can post this barrier, at most `most` after the last complete one. */
static inline bool nblib_can_post(const struct nbar_group *g, uint64_t word, uint32_t epoch,
				  uint32_t most)
{
	return order_runs(&g->runs) && !g->attached && !(word >> 32) &&
	       epoch - (uint32_t)word <= most && order_down_read(&g->port->link.down) == NBLIB_UP;
}

/* True if the group is aborted, or the word has a status other than OK. */
static inline bool nblib_group_is_over(const struct nbar_group *g, uint64_t word)
{
	return word >> 32 || order_aborted(&g->aborted);
}

/* Does what nbar_wait does, with another policy. */
int nblib_group_wait(struct nbar_group *g, uint32_t ticket, const struct nbar_wait_policy *policy,
		     uint64_t timeout_ns);

static inline bool nblib_reached(uint64_t word, uint32_t ticket)
{
	return (int32_t)((uint32_t)word - ticket) >= 0;
}

/* --- stat_group.c -------------------------------------------------------------------------- */

/* The statistic of the group in a cell of a port, and its index. */
int nblib_stat_group(struct nblib_link *link, uint32_t port, uint32_t cell, uint32_t *index,
		     struct nbar_group_stat *out);

/* --- reach.c -------------------------------------------------------------------------------- */

/* Returns " (ADDRESS)" of the NIC of the rank that has failed the group, or "" if the NIC of this
 * host does not know it. The first call asks the NIC, for NBLIB_ADDRESS_MS at most. */
const char *nblib_silent_address(struct nbar_group *g, uint32_t rank);
#define NBLIB_ADDRESS_MS 100u

/* --- why.c --------------------------------------------------------------------------------- */

/* Returns -ETIME; the text says which ranks have not arrived, and why. */
int nblib_why_late(const struct nbar_group *g, uint32_t ticket);

/* A waiting thread looks at the NIC's sign of life. Returns at once. */
void nblib_life_look(struct nbar_group *g, uint64_t now);

/* The time for which waiting threads have seen no sign of life. */
static inline uint64_t nblib_life_mute(const struct nbar_group *g)
{
	return order_stat_read(&g->life_mute);
}

/* --- team_kind.c: how the threads of a team meet --------------------------------------------- */

enum nblib_kind { NBLIB_SENSE_REVERSE, NBLIB_MCS, NBLIB_TOURNAMENT, NBLIB_DISSEMINATION };

/* Sets kind, ways and lines of a team, whose size is set and whose other fields are 0.
 * -EINVAL: no such kind. */
int nblib_kind_parse(struct nbar_team *team, const char *kind);

/* Bytes of a team whose size and lines are set. */
uint64_t nblib_kind_bytes(const struct nbar_team *team);

/* Prepares all words of a team for the barrier that follows epoch. */
void nblib_kind_begin(struct nbar_team *team, uint32_t epoch);

/* 1: all have arrived, and this thread must post or release; 0: another thread must do so;
 * -ECANCELED: the team's group has failed. */
int nblib_kind_arrive(struct nbar_team *team, uint32_t me, uint32_t *ticket);

/* "sense-reverse": true if this barrier of the team, or only of its threads, is complete. */
bool nblib_kind_reached(const struct nbar_team *team, uint32_t ticket);

/* End of a barrier: one thread releases, the others wait (false: the team's group has failed). */
void nblib_kind_release(struct nbar_team *team, uint32_t me, uint32_t ticket);
bool nblib_kind_wait(struct nbar_team *team, uint32_t me, uint32_t ticket);

/* --- wait.c -------------------------------------------------------------------------------- */

/* MUTE: the wait has no time limit, and the NIC has shown no sign of life for NBLIB_MUTE_NS. */
enum nblib_end { NBLIB_DONE, NBLIB_FAILED, NBLIB_LOST, NBLIB_TIMEOUT, NBLIB_MUTE };
#define NBLIB_MUTE_NS UINT64_C(30000000000)

uint64_t nblib_now_ns(void);

/* Waits until the group's completion word reaches ticket. */
enum nblib_end nblib_wait_group(struct nbar_group *g, const struct nbar_wait_policy *policy,
				uint32_t ticket, uint64_t timeout_ns);

/* Waits until a word of a team reaches ticket. False: the group has failed with that ticket. */
bool nblib_wait_team(const struct nbar_team *team, uint64_t *word, uint32_t ticket);

/* Wakes the threads that sleep in nblib_wait_group, so that they check again. */
void nblib_wake_group(const struct nbar_group *g);

/* Wakes the threads that sleep in nblib_wait_team. */
void nblib_wake_team(uint64_t *word);
#define NBLIB_TEAM_SLEEPS (UINT64_C(1) << 63) /* flag in a team's own word: a thread sleeps */

/* Waits for a process team without a group. False: timeout_ns have passed. */
bool nblib_wait_procs(struct nbar_process_team *procs, const struct nbar_wait_policy *policy,
		      uint32_t ticket, uint64_t timeout_ns);
void nblib_wake_procs(struct nbar_process_team *procs);

/* 0, or -EINVAL: the group cannot carry the value. */
int nblib_value_check(const struct nbar_group *g, const struct nbar_value *value);

/* value_place.c. Bytes of the elements of a value; 0: no such type, op does not take it, or too
 * many. */
uint32_t nblib_value_length(const struct nbar_value *v);

/* The place of a barrier's value. order_post orders the writes of the host here,
 * order_completion_read its reads. */
struct nbar_value *nblib_value_place(const struct nbar_group *g, uint32_t epoch);

/* Copies the value that a barrier carries, with its head, to `out`; returns its bytes, or 0. */
uint32_t nblib_value_posted(const struct nbar_group *g, uint32_t epoch, uint8_t *out);

/* Writes the value of a barrier into the page, before it is posted. */
void nblib_value_put(struct nbar_group *g, uint32_t epoch, const struct nbar_value *value);

/* True if all processes have arrived. */
static inline bool nblib_procs_arrived(const struct nbar_process_team *procs, uint32_t ticket)
{
	for (uint32_t i = 0; i < procs->size; i++)
		if (!nblib_reached(order_procs_read(&procs->arrived[i]), ticket))
			return false;
	return true;
}

/* True if the barrier of a process team without a group is complete. */
#define NBLIB_PROCS_SMALL 16u /* tickets in a cache line */
static inline bool nblib_procs_reached(const struct nbar_process_team *procs, uint32_t ticket)
{
	if (procs->size <= NBLIB_PROCS_SMALL)
		return nblib_procs_arrived(procs, ticket);
	return nblib_reached(order_procs_done(&procs->done), ticket);
}

/* True if a thread with this policy may begin to wait by testing many times in a row. */
bool nblib_spins(const struct nbar_wait_policy *policy);

/* Reads $NBAR_WAIT, or takes the default. -EINVAL: $NBAR_WAIT makes no sense. */
int nblib_wait_default(struct nbar_wait_policy *out);

#endif
