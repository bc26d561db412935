/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - one whole NIC: groups (nic.h), ports and their pages (page.h), clients and their
 * requests, and the poll pass that serves them all.
 *
 * Freestanding. A platform (platform.h) calls the pass again and again from one thread, and the
 * functions for requests from one thread: the same one or another, see platform.h.
 */
#ifndef NBNIC_DEVICE_H
#define NBNIC_DEVICE_H

#include "config.h"
#include "page.h"
#include "platform.h"
#include "wire.h"

struct nbnic_client;

/* The block of a group that has ended, until the side of requests frees it. This struct lies at
 * the start of the block; the peers of the group can still be read. */
struct nbnic_released {
	struct nbnic_released *next;
};
_Static_assert(sizeof(struct nbnic_released) <= offsetof(struct nbnic_group, bytes) &&
		       sizeof(struct nbnic_released) <= offsetof(struct nbnic_group, peer) &&
		       sizeof(struct nbnic_released) <= offsetof(struct nbnic_group, nconnected),
	       "the link overwrites neither size nor peers");

/* The account of a user: what its ports hold. */
struct nbnic_user {
	uint32_t uid;
	uint32_t nport, nattached, ngroup;
	uint64_t bytes; /* memory of its open groups */
};

struct nbnic_device {
	/* Owned by the pass. The side of requests uses it only within platform->exclusive. */
	struct wire_base *wire;
	uint64_t next_tick;
	uint32_t nopen; /* ports in open[] */
	uint32_t nbusy; /* ports with groups: open[0 .. nbusy). A pass looks only at these */
	uint32_t
		signals_at; /* index in open[] of the port whose signals go first; nbusy: open[0] */
	uint32_t live_at;   /* index in open[] of the port that is shown a sign of life next */
	uint64_t look_next; /* when platform->look may be called again */
	uint32_t lend_at;   /* index of the group that lend.c looks at next */
	uint32_t nlent;     /* groups that the wire has */
	uint32_t nwaited;   /* passes in which signals had to wait; wraps */
	struct nbnic_port *open[NBNIC_PORTS_MAX];
	struct nbnic_port *port[NBNIC_PORTS_MAX]; /* by number */
	struct nbnic_released *released;

	/* Owned by the side of requests. */
	const struct nbnic_platform *platform;
	void *ctx;
	uint64_t pull_ns;
	uint64_t open_bytes_max, port_bytes_max; /* memory of groups that are open */
	uint64_t open_bytes;
	struct nbnic_user user_max; /* the limits of each user */
	struct nbnic_user user[NBNIC_USERS_MAX];
	uint32_t nblock;    /* blocks of groups: open, lingering and released */
	uint32_t ngroup;    /* open groups */
	uint32_t nattached; /* clients attached to a port of another client */
	uint32_t pid;       /* of the program that runs the NIC, for people */
	bool wire_closed;   /* true: peer_end of the wire is no longer called */
	struct nbnic_client *client;
	struct nbnic_client *owner[NBNIC_PORTS_MAX]; /* the client that opened the port */
	char name[NBAR_NAME_MAX];

	struct nbnic nic;
};

/* Sets user_max: this percentage of the NIC, or no limit if percent is 0. Called by
 * nbnic_device_init. */
void nbnic_users_init(struct nbnic_device *d, uint32_t percent);

/* lend.c, of the pass: takes a group back; lends some of the groups that have nothing to do; and
 * takes back groups whose posts the wire may not have heard of, at the second look at the same
 * post, or if the host has kicked. True: a doorbell must be read. */
void nbnic_lend_take(struct nbnic_device *d, struct nbnic_group *g, uint64_t now);
bool nbnic_lend_some(struct nbnic_device *d, uint64_t now);
bool nbnic_lend_look(struct nbnic_device *d, struct nbnic_port *p, bool kicked, uint64_t now);

/* A port has got its first group, or lost its last one: moves it to its part of open[]. Only within
 * platform->exclusive. */
void nbnic_device_port_place(struct nbnic_device *d, struct nbnic_port *p);

/* Makes a NIC without ports. The wire is open; the caller closes it after nbnic_device_end. name is
 * copied. 0, or -NBAR_EINVAL: the times of config do not fit each other. */
int nbnic_device_init(struct nbnic_device *d, const char *name, struct wire_base *wire,
		      const struct nbnic_platform *platform, void *ctx,
		      const struct nbnic_config *config);

/* Pass: takes frames from the wire, reads doorbells, sends waiting frames, fires timers; each up to
 * a budget (config.h). True: there was work. */
bool nbnic_device_pass(struct nbnic_device *d, uint64_t now);

/* Pass: returns the time at which nbnic_device_pass has work again, if no frame and no doorbell
 * comes before. 0: now; UINT64_MAX: never. */
uint64_t nbnic_device_next(const struct nbnic_device *d);

/* Pass: asks the hosts for kicks before the NIC sleeps, or no more. After it has asked, and before
 * it sleeps, nbnic_device_scans passes must find no work: they look at all doorbells. */
void nbnic_device_ask_kicks(struct nbnic_device *d, bool wanted);
uint32_t nbnic_device_scans(const struct nbnic_device *d);

/* Pass: true if the wire runs the barriers of all groups: nothing waits for the next pass. */
bool nbnic_device_lends_all(const struct nbnic_device *d);

/* The next pass looks at lent groups whose host waits. */
static inline void nbnic_device_look(struct nbnic_device *d)
{
	if (d->nlent)
		d->next_tick = 0;
}

/* Pass: fails all groups with NIC_DOWN, and no longer reads doorbells. Peers may still send PULLs
 * for a while: run passes until nbnic_device_next returns UINT64_MAX, or for a limited time. */
void nbnic_device_stop(struct nbnic_device *d, uint64_t now);

/* Pass: closes groups of a port, up to a budget. True: all are closed; the NIC no longer reads the
 * port, and its memory belongs to the caller again. */
__attribute__((cold)) bool nbnic_device_port_end(struct nbnic_device *d, struct nbnic_port *p,
						 uint8_t cause, uint64_t now);

/* Requests: frees blocks of groups that have ended. Call it now and then while
 * nbnic_device_lingers. */
void nbnic_device_reclaim(struct nbnic_device *d);
static inline bool nbnic_device_lingers(const struct nbnic_device *d)
{
	return d->nblock > d->ngroup;
}

/* Frees everything, when neither side is called any more. Clients must have ended, or must never be
 * used again. */
void nbnic_device_end(struct nbnic_device *d);

/*
 * A client: one connection of a process to the NIC. The platform names the process, hands over its
 * messages one by one, and says when the client has ended.
 */
struct nbnic_client {
	struct nbnic_device *device;
	struct nbnic_client *next;
	struct nbnic_port *port;             /* NULL: none open */
	struct nbnic_client *owner;          /* the client whose port it has attached to, or NULL */
	uint64_t held[NBAR_GROUPS_MAX / 64]; /* cells that it holds while attached, a bit each */
	uint64_t secret[2];                  /* of its port */
	uint64_t bytes;                      /* memory of its open groups */
	uint32_t ngroup;                     /* open groups of its port */
	uint32_t user;                       /* its account, if it has a port */
	uint32_t pid, uid;
	bool attach_only; /* it may attach to ports, but not open one */
	bool gives_page;  /* the current reply carries the page of port `page_port` */
	uint32_t page_port;
	bool gives_events; /* the current reply carries the socket that events_make has made */
};

void nbnic_client_begin(struct nbnic_device *d, struct nbnic_client *c, uint32_t pid, uint32_t uid,
			bool attach_only);

/* Ends a client: groups of its port close, groups that it is attached to fail; cause says why. */
void nbnic_client_end(struct nbnic_client *c, uint8_t cause);

/* The port of a client is that of a remote host from here on: see mirror.h. NULL, or why not. */
const char *nbnic_client_mirror(struct nbnic_client *c);

/* Gives back the port of a client when the NIC is no longer polled, without telling members. */
void nbnic_client_abandon(struct nbnic_client *c);

/*
 * Answers one message. `in` has `length` bytes, at most NBAR_MESSAGE_MAX, and is aligned for
 * uint64_t; truncated: the message was longer. Writes the reply to `out`, which has room for
 * NBAR_MESSAGE_MAX bytes and the same alignment. Returns the length of the reply. If c->gives_page
 * is set afterwards, the platform sends the page of c->page_port with the reply; if c->gives_events
 * is set, the socket of events_make.
 */
uint32_t nbnic_client_request(struct nbnic_client *c, const void *in, size_t length, bool truncated,
			      void *out);

/* Writes a reply that refuses a client: for a platform that cannot serve it. text is for users.
 * Returns the length of the reply. */
uint32_t nbnic_refuse(int error, const char *text, void *out);

#endif
