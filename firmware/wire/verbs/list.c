/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * list.c - the RDMA devices of this machine. See route.h.
 */
#include <pthread.h>
#include <stddef.h>

#include "route.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_device **list;

struct ibv_device **verbs_devices(void)
{
	pthread_mutex_lock(&lock);
	if (list && !list[0]) {
		ibv_free_device_list(list);
		list = NULL;
	}
	if (!list)
		list = ibv_get_device_list(NULL);
	pthread_mutex_unlock(&lock);
	return list;
}
