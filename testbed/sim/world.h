/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * world.h - whole NICs (libnbnic.a) and their hosts in a simulated world. The world is a platform:
 * it gives the NICs memory, pages, time and a wire.
 *
 * A NIC runs a poll pass when it has input or a timer is due, and its core is free. Hosts open
 * ports and groups with the messages of libnbar, and post with its stores. The user of this file
 * controls the hosts: world.progress reports what a host sees, and events of type SIM_WORLD_USER
 * and above go to world.user. All randomness comes from the network's seed.
 */
#ifndef NBAR_TOOLS_SIM_WORLD_H
#define NBAR_TOOLS_SIM_WORLD_H

#include "device.h"
#include "net.h"
#include "queue.h"

#define SIM_NOBODY UINT32_MAX

enum {
	SIM_WORLD_FRAME,
	SIM_WORLD_TURN,
	SIM_WORLD_PROGRESS,
	SIM_WORLD_FAST,
	SIM_WORLD_TIMER,
	SIM_WORLD_USER
};

struct sim_world;
struct sim_fast;

struct sim_nic {
	struct wire_base wire; /* must be first: a wire is cast to its NIC */
	struct sim_world *world;
	uint32_t index;
	uint32_t head, tail, waiting; /* frames in its receive queue */
	uint32_t first_host;          /* the hosts on it, by sim_host.next */
	sim_time signals_at;   /* time of its next pass in the event queue; UINT64_MAX: none */
	sim_time now;          /* in a pass: the time of its current work */
	sim_time full_until;   /* until then, the wire has no room */
	uint64_t clock_ns;     /* the NIC's clock - simulated time */
	uint32_t side;         /* while world.cut: frames do not pass between sides */
	bool dead;             /* the NIC runs no more passes */
	struct sim_fast *fast; /* the fast path, which runs lent groups: fast.h; or NULL */
	bool loses;            /* the next state does not come back from the fast path */
	uint32_t lost;         /* states that did not */
	uint64_t dropped, cut, refused; /* numbers of frames */
	struct nbnic_device device;
};

struct sim_host {
	struct nbnic_client client;
	struct nbar_page *page; /* NULL: the port is closed */
	uint32_t index, nic, next;
	uint32_t cell, rank;
	uint32_t values; /* index in value[] of the page */
	uint32_t user;   /* free for the user of this file */
	uint64_t seen;   /* the completion word that was reported last */
	/* Of a NIC with a fast path. */
	uint32_t posted, wake; /* the last post; the wake word before the host asked for a wake */
	bool asking, asleep;   /* asleep: until the wake word changes, the host looks at nothing */
};

struct sim_frame {
	uint32_t from, next;
	struct nbfw_token token;
	struct nbfw_value value; /* if token.value_length is not 0 */
};

struct sim_world {
	struct sim_net net;
	struct sim_queue queue;
	sim_time now;
	uint32_t nnic, nhost, host_room;
	struct sim_nic **nic;
	struct sim_host **host;
	sim_time *busy;     /* by core: time until which it is busy */
	sim_time turn_cost; /* of a pass without frames */
	sim_time notice;
	uint32_t queue_limit; /* frames of a receive queue */
	uint32_t refuse;      /* of a million sends, the wire has no room for this many */
	uint64_t pull_ns, budget_ns;
	uint32_t lends;    /* a bit for each NIC with a fast path */
	uint32_t sleeps;   /* of a million posts at such a NIC, the host sleeps after this many */
	uint32_t unsent;   /* of a million messages to a fast path, this many are not sent */
	uint32_t unlent;   /* of a million lends, the wire refuses this many */
	sim_time full_for; /* longest time for which a wire refuses sends; 0: one send */
	sim_time waits;    /* longest time that a frame waits for its fast path */
	bool cut;
	bool full;         /* there was no memory */
	const char *wrong; /* what a fast path has found; or NULL */
	uint32_t turned;   /* the NIC that ran a pass in the last step, or SIM_NOBODY */
	uint64_t passes, frames, digest;
	uint64_t fast_frames, fast_completed; /* sent, and barriers completed, by fast paths */
	sim_time noise;                       /* sum over all NICs */
	struct sim_frame *frame;
	uint32_t nframe, frame_free;
	uint64_t blocks; /* blocks of memory that the NICs hold */
	uint64_t secret; /* for random numbers of NICs */
	/* A host sees a completion word: ev.epoch, ev.info (status), ev.arg (failed rank). */
	void (*progress)(void *arg, struct sim_host *h, const struct sim_event *ev);
	void (*user)(void *arg, const struct sim_event *ev);
	void *arg;
	uint64_t in[NBAR_MESSAGE_MAX / 8], out[NBAR_MESSAGE_MAX / 8];
};

/* Makes NICs without hosts. All fields of *w are 0 before, but the caller may have set turn_cost
 * and the fields after it. 0, -NBAR_ENOMEM, or -NBAR_EINVAL: a NIC does not begin. */
int sim_world_begin(struct sim_world *w, const struct sim_net_options *net);
void sim_world_end(struct sim_world *w);

/* Handles one event. False: there is no event up to `until`, or no memory. */
bool sim_world_step(struct sim_world *w, sim_time until);

/* Makes a host with a port on a NIC. NULL: no memory, or the NIC refuses. */
struct sim_host *sim_host_begin(struct sim_world *w, uint32_t nic);

/* Ends the process of a host: cause CLOSED or HOST_DIED. */
void sim_host_end(struct sim_world *w, struct sim_host *h, uint8_t cause);

/* Sends a message from a host to its NIC. Returns the status of the reply; *reply is its body. */
int sim_host_request(struct sim_world *w, struct sim_host *h, enum nbar_op op, const void *body,
		     size_t length, const void **reply);

/*
 * Opens and connects a group: host[i] has rank i. plan: NULL, or the plan that each rank uploads.
 * value_max: as in nbar_req_group_open.
 * 0, or the first negative status of a reply.
 */
int sim_group_begin(struct sim_world *w, struct sim_host *const *host, uint32_t size,
		    const char *alg, const struct nbar_plan *const *plan, uint32_t value_max);

/* For the fast path. */
void sim_world_send(struct sim_nic *n, const struct nbnic_addr *to, const struct nbfw_token *t);
/* A frame goes on to the receive queue of the NIC, which may be full. */
void sim_world_up(struct sim_nic *n, uint32_t frame);
void sim_frame_free(struct sim_world *w, uint32_t frame);
/* The hosts of a NIC learn of changes. */
void sim_world_look(struct sim_nic *n);

static inline uint32_t sim_nic_of(const struct nbnic_addr *a)
{
	uint32_t nic;

	__builtin_memcpy(&nic, a->byte, sizeof(nic));
	return nic;
}

/* Where a host with a page writes the value of a barrier, and reads its result. */
static inline struct nbar_value *sim_host_value(const struct sim_host *h, uint32_t epoch)
{
	return &h->page->value[h->values][epoch % NBAR_VALUES_AHEAD].value;
}

/* The host posts barriers up to this epoch by one store. */
void sim_host_post(struct sim_world *w, struct sim_host *h, uint32_t epoch);

/* Kills a NIC: its hosts lose their ports. A restarted NIC has no ports and no groups. */
void sim_nic_kill(struct sim_world *w, uint32_t nic);
int sim_nic_restart(struct sim_world *w, uint32_t nic);

/* Moves the clock of a NIC forward. */
void sim_nic_jump(struct sim_world *w, uint32_t nic, uint64_t ns);

/* Injects a forged frame. */
void sim_world_inject(struct sim_world *w, uint32_t from, uint32_t to, const struct nbfw_token *t,
		      sim_time at);

void sim_world_push(struct sim_world *w, sim_time at, uint8_t type, uint32_t to, uint32_t arg);

/* Sum of a counter over all NICs; 0 for the counters of the wire, which only a request for
 * statistics adds. */
uint64_t sim_world_counted(struct sim_world *w, enum nbar_counter c);

#endif
