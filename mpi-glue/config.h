/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.h - the settings of a user, from any source.
 *
 * The PMPI library reads the environment (nbmpi_config_env). The Open MPI component reads its own
 * parameters (ompi/coll_nbar_component.c). The core only reads this struct.
 */
#ifndef NBMPI_CONFIG_H
#define NBMPI_CONFIG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "nbar_extra.h"

/* What a rank does between two tests of a barrier that is not complete. */
enum nbmpi_wait {
	NBMPI_WAIT_AUTO,  /* spin while nobody else wants the processor, else yield */
	NBMPI_WAIT_SPIN,  /* test again */
	NBMPI_WAIT_YIELD, /* let other processes run */
	NBMPI_WAIT_BLOCK  /* sleep until the NIC wakes it, with breaks for MPI's progress */
};

/* Where barriers run. */
enum nbmpi_where {
	NBMPI_WHERE_AUTO, /* as NBMPI_WHERE_NIC, but by the MPI if the NICs are slower */
	NBMPI_WHERE_NIC,  /* in a daemon's NIC that the ranks of a host share */
	NBMPI_WHERE_HOST  /* in an in-process NIC of one rank of each host; its other ranks share it
			   */
};

struct nbmpi_config {
	bool enable, allreduce;
	enum nbmpi_where where;
	char alg[256];      /* a name that NICs know, or "tuned:FILE" */
	uint32_t min_hosts; /* communicators over fewer hosts use the MPI's own barrier */
	enum nbmpi_wait wait;
	char nic[256]; /* name for nbar_open, with %r for the world rank, %h for the host's name;
			* empty: nbar's default. NBMPI_WHERE_HOST: begins with "host:" */
	int verbose;   /* 0: nothing; 1: fallbacks, counters; 2: each communicator, each reason */
};

/* The defaults. */
void nbmpi_config_init(struct nbmpi_config *out);

/* Reads NBAR_MPI_ENABLE, _ALLREDUCE, _ALG, _MIN_HOSTS, _WAIT, _WHERE, _NIC and _VERBOSE. An
 * invalid value causes a message on stderr, and turns enable off. */
void nbmpi_config_env(struct nbmpi_config *out);

/* Prints one line, "nbar: " and the text, to stderr. It is one write, so that lines of different
 * ranks do not mix. A text of 600 bytes or more is cut. */
void nbmpi_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void nbmpi_vsay(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* Read the text of a setting with this name. False, and a message on stderr: it is invalid. */
bool nbmpi_wait_read(const char *name, const char *text, enum nbmpi_wait *out);
bool nbmpi_where_read(const char *name, const char *text, enum nbmpi_where *out);

/* Turns enable off, and prints the reason, if the NIC's name is invalid for this rank of the world,
 * or does not fit `where`. If only one of the two is set, sets the other accordingly. */
void nbmpi_config_check(struct nbmpi_config *config, uint32_t rank);

/* The NIC's name as the user gave it, here or in NBAR_NIC. NULL: nbar's default. */
const char *nbmpi_config_nic(const struct nbmpi_config *config);

/* Called before MPI loads and unloads its networks: keeps the libraries that an in-process NIC
 * needs. */
void nbmpi_config_pin(const struct nbmpi_config *config);

/* Writes the NIC's name with %r and %h filled in. False: it is too long, or has another %. */
#define NBMPI_NIC_SIZE 320u
bool nbmpi_nic_name(const struct nbmpi_config *config, uint32_t rank, char *out, size_t size);

#endif
