// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Transmit scheduler of E810: a tree of root, VSI node and one leaf (queue set) for each
 * traffic class that has users (spec 01, 4.8 op 0x2C; spec 03, 6.7).
 *
 * QPs join with their priority when they start a stream (process context) and leave when
 * their resources go; ILQ and IEQ join priority 0.  One mutex guards the tree: joining is
 * rare and waits for the control queue.  A change of traffic classes suspends all users,
 * rebuilds the tree and resumes them on their new queue sets (spec 01, 1.5).
 *
 * X722 has fixed queue sets: its LAN glue offers no add_qset and lends handles instead.
 */
#include <linux/bitfield.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "irdma.h"
#include "qos.h"

#define CQP_OP_WS_NODE		0x2CULL
#define WS_QW3_OPCODE		GENMASK_ULL(37, 32)
#define WS_QW3_NODE_ID		GENMASK_ULL(9, 0)
#define WS_QW3_PARENT_ID	GENMASK_ULL(25, 16)
#define WS_QW3_NODE_OP		GENMASK_ULL(53, 52)
#define WS_QW3_TC		GENMASK_ULL(58, 56)
#define WS_QW3_PRIO_TYPE	GENMASK_ULL(60, 59)
#define WS_QW3_LEAF		BIT_ULL(61)
#define WS_QW3_ENABLE		BIT_ULL(62)
#define WS_QW4_VSI		GENMASK_ULL(57, 48)
#define WS_QW4_WEIGHT		GENMASK_ULL(38, 32)

enum ws_op { WS_ADD = 0, WS_MODIFY = 1, WS_DELETE = 2 };

#define WS_WEIGHTED_ROUND_ROBIN	1
#define WS_ROOT			0
#define WS_VSI			1
#define WS_FIRST_LEAF		2	/* leaf of traffic class n: WS_FIRST_LEAF + n */

/* All users must have stopped within this time, or the change goes on without them. */
#define SUSPEND_TIMEOUT_MS	5000
/* ice tells of the end of a change right after applying it. */
#define TC_CHANGE_TIMEOUT_MS	10000

struct ws_node {
	u16 id;
	u16 parent;
	u8 tc;
	u8 weight;
	bool leaf;
};

/**
 * struct ws_leaf - queue set of a traffic class
 * @users: QPs on it; it exists in hardware while this is not 0
 * @qs_handle: what hardware calls it
 * @teid: what the LAN driver's scheduler calls it
 */
struct ws_leaf {
	unsigned int users;
	u16 qs_handle;
	u32 teid;
};

/**
 * struct irdma_ws - scheduler of a device
 * @lock: guards everything here
 * @leaves: by traffic class
 * @num_leaves: leaves in hardware; root and VSI node exist while it is not 0
 * @users: every &struct irdma_qos_user that joined
 * @tc_changing: between the two events of the LAN driver
 * @to_suspend: suspended-events still to come
 * @wait: for @to_suspend reaching 0 and for @tc_changing ending
 */
struct irdma_ws {
	struct mutex lock;
	struct ws_leaf leaves[IRDMA_MAX_USER_PRIO];
	unsigned int num_leaves;
	struct list_head users;
	bool tc_changing;
	atomic_t to_suspend;
	wait_queue_head_t wait;
};

static int ws_exec(struct irdma_device *dev, const struct ws_node *node, enum ws_op op,
		   bool enable, u32 *retval)
{
	struct irdma_cqp_req req = {};
	int err;

	req.wqe[3] = FIELD_PREP(WS_QW3_OPCODE, CQP_OP_WS_NODE) |
		     FIELD_PREP(WS_QW3_NODE_ID, node->id) |
		     FIELD_PREP(WS_QW3_PARENT_ID, node->parent) |
		     FIELD_PREP(WS_QW3_NODE_OP, op) |
		     FIELD_PREP(WS_QW3_TC, node->tc) |
		     FIELD_PREP(WS_QW3_PRIO_TYPE, WS_WEIGHTED_ROUND_ROBIN) |
		     (node->leaf ? WS_QW3_LEAF : 0) | (enable ? WS_QW3_ENABLE : 0);
	req.wqe[4] = FIELD_PREP(WS_QW4_VSI, dev->lan->vsi) |
		     FIELD_PREP(WS_QW4_WEIGHT, max_t(u8, node->weight, 1));
	err = irdma_cqp_exec(dev, &req);
	if (retval)
		*retval = req.retval;
	return err;
}

static const struct ws_node ws_root = { .id = WS_ROOT, .parent = WS_ROOT };
static const struct ws_node ws_vsi = { .id = WS_VSI, .parent = WS_ROOT };

static struct ws_node ws_leaf_node(struct irdma_device *dev, u8 tc)
{
	return (struct ws_node){
		.id = WS_FIRST_LEAF + tc,
		.parent = WS_VSI,
		.tc = tc,
		.weight = dev->lan->qos.rel_bw[tc],
		.leaf = true,
	};
}

static void ws_del_trunk(struct irdma_device *dev)
{
	ws_exec(dev, &ws_vsi, WS_DELETE, false, NULL);
	ws_exec(dev, &ws_root, WS_DELETE, false, NULL);
}

static int ws_add_trunk(struct irdma_device *dev)
{
	int err;

	err = ws_exec(dev, &ws_root, WS_ADD, true, NULL);
	if (err)
		return err;
	err = ws_exec(dev, &ws_vsi, WS_ADD, true, NULL);
	if (err)
		ws_exec(dev, &ws_root, WS_DELETE, false, NULL);
	return err;
}

static int ws_add_leaf(struct irdma_device *dev, u8 tc)
{
	struct irdma_ws *ws = dev->ws;
	struct ws_leaf *leaf = &ws->leaves[tc];
	struct ws_node node = ws_leaf_node(dev, tc);
	u32 handle;
	int err;

	if (!ws->num_leaves) {
		err = ws_add_trunk(dev);
		if (err)
			goto complain;
	}
	err = ws_exec(dev, &node, WS_ADD, false, &handle);
	if (err)
		goto del_trunk;
	leaf->qs_handle = handle;
	err = dev->lan->ops->add_qset(dev->lan, leaf->qs_handle, tc, &leaf->teid);
	if (err)
		goto del_leaf;
	err = ws_exec(dev, &node, WS_MODIFY, true, NULL);
	if (err)
		goto del_qset;
	ws->num_leaves++;
	return 0;

del_qset:
	dev->lan->ops->del_qset(dev->lan, leaf->qs_handle, tc, leaf->teid);
del_leaf:
	ws_exec(dev, &node, WS_DELETE, false, NULL);
del_trunk:
	if (!ws->num_leaves)
		ws_del_trunk(dev);
complain:
	dev_err(&dev->lan->pdev->dev, "no transmit queue set for traffic class %u: %pe\n", tc,
		ERR_PTR(err));
	return err;
}

static void ws_del_leaf(struct irdma_device *dev, u8 tc)
{
	struct irdma_ws *ws = dev->ws;
	struct ws_leaf *leaf = &ws->leaves[tc];
	struct ws_node node = ws_leaf_node(dev, tc);

	ws_exec(dev, &node, WS_DELETE, false, NULL);
	dev->lan->ops->del_qset(dev->lan, leaf->qs_handle, tc, leaf->teid);
	if (!--ws->num_leaves)
		ws_del_trunk(dev);
}

/* Traffic classes that the LAN driver does not use fall to class 0. */
static u8 ws_tc(struct irdma_device *dev, u8 user_prio)
{
	const struct irdma_qos *qos = &dev->lan->qos;
	u8 tc = qos->up2tc[user_prio];

	return tc < qos->num_tc && tc < IRDMA_MAX_USER_PRIO ? tc : 0;
}

static bool ws_scheduled(const struct irdma_device *dev)
{
	return dev->lan->ops->add_qset;
}

/* Take a place on the leaf of the user's priority; ws->lock held. */
static int ws_attach(struct irdma_device *dev, struct irdma_qos_user *user)
{
	u8 tc = ws_tc(dev, user->user_prio);
	struct ws_leaf *leaf = &dev->ws->leaves[tc];
	int err;

	if (!ws_scheduled(dev)) {
		user->qs_handle = dev->lan->qos.qs_handle[user->user_prio];
		return 0;
	}
	if (!leaf->users) {
		err = ws_add_leaf(dev, tc);
		if (err)
			return err;
	}
	leaf->users++;
	user->qs_handle = leaf->qs_handle;
	return 0;
}

static void ws_detach(struct irdma_device *dev, struct irdma_qos_user *user)
{
	u8 tc = ws_tc(dev, user->user_prio);

	if (ws_scheduled(dev) && dev->ws->leaves[tc].users && !--dev->ws->leaves[tc].users)
		ws_del_leaf(dev, tc);
}

/**
 * irdma_qos_join - give a QP the transmit queue set of its priority
 * @dev: device
 * @user: the QP; a QP that joined before keeps its priority
 * @user_prio: 802.1p priority, 0..7
 *
 * The first user of a traffic class creates its leaf, later ones cost no command.  While
 * traffic classes change, the call waits for the end of the change.
 *
 * Context: process, sleeps.
 * Return: 0 with @user->qs_handle set; -EINVAL; -EBUSY when a change of traffic classes
 * does not end; an error of the control queue or of the LAN driver.
 */
int irdma_qos_join(struct irdma_device *dev, struct irdma_qos_user *user, u8 user_prio)
{
	struct irdma_ws *ws = dev->ws;
	int err;

	if (user_prio >= IRDMA_MAX_USER_PRIO)
		return -EINVAL;
	if (!wait_event_timeout(ws->wait, !READ_ONCE(ws->tc_changing),
				msecs_to_jiffies(TC_CHANGE_TIMEOUT_MS)))
		return -EBUSY;
	mutex_lock(&ws->lock);
	if (ws->tc_changing) {
		err = -EBUSY;
	} else if (!list_empty(&user->entry)) {
		err = 0;
	} else {
		user->user_prio = user_prio;
		err = ws_attach(dev, user);
		if (!err)
			list_add_tail(&user->entry, &ws->users);
	}
	mutex_unlock(&ws->lock);
	return err;
}

/**
 * irdma_qos_leave - a QP transmits no more
 * @dev: device
 * @user: the QP; nothing happens if it never joined
 *
 * The last user of a traffic class takes its leaf away.
 *
 * Context: process, sleeps; the QP must be destroyed in hardware.
 */
void irdma_qos_leave(struct irdma_device *dev, struct irdma_qos_user *user)
{
	struct irdma_ws *ws = dev->ws;

	mutex_lock(&ws->lock);
	if (!list_empty(&user->entry)) {
		list_del_init(&user->entry);
		if (!ws->tc_changing)
			ws_detach(dev, user);
	}
	mutex_unlock(&ws->lock);
}

/**
 * irdma_qos_qp_suspended - a QP has stopped transmitting
 * @dev: device
 *
 * Called for each AE 0x0900, also if its QP is gone by now.
 *
 * Context: any.
 */
void irdma_qos_qp_suspended(struct irdma_device *dev)
{
	struct irdma_ws *ws = dev->ws;

	if (ws && atomic_dec_if_positive(&ws->to_suspend) == 0)
		wake_up_all(&ws->wait);
}

static void ws_suspend_users(struct irdma_device *dev)
{
	struct irdma_ws *ws = dev->ws;
	struct irdma_qos_user *user;
	struct irdma_cqp_req req;

	list_for_each_entry(user, &ws->users, entry)
		atomic_inc(&ws->to_suspend);
	list_for_each_entry(user, &ws->users, entry) {
		memset(&req, 0, sizeof(req));
		irdma_cqp_prep_suspend_qp(dev, &req, user->qpn);
		if (irdma_cqp_exec(dev, &req))
			irdma_qos_qp_suspended(dev);
	}
	if (!wait_event_timeout(ws->wait, !atomic_read(&ws->to_suspend) || irdma_is_dead(dev),
				msecs_to_jiffies(SUSPEND_TIMEOUT_MS)))
		dev_warn(&dev->lan->pdev->dev, "%d queue pairs did not stop within %u ms\n",
			 atomic_read(&ws->to_suspend), SUSPEND_TIMEOUT_MS);
	atomic_set(&ws->to_suspend, 0);
}

static void ws_delete_tree(struct irdma_device *dev)
{
	u8 tc;

	for (tc = 0; tc < IRDMA_MAX_USER_PRIO; tc++) {
		if (!dev->ws->leaves[tc].users)
			continue;
		dev->ws->leaves[tc].users = 0;
		ws_del_leaf(dev, tc);
	}
}

/**
 * irdma_qos_tc_changing - the LAN driver is about to change its traffic classes
 * @dev: device
 *
 * Stops all transmission and takes the scheduler tree away.  A second call before
 * irdma_qos_tc_changed() does nothing.
 *
 * Context: process, sleeps up to 5 s.
 */
void irdma_qos_tc_changing(struct irdma_device *dev)
{
	struct irdma_ws *ws = dev->ws;

	if (!ws_scheduled(dev))
		return;
	mutex_lock(&ws->lock);
	if (!ws->tc_changing) {
		WRITE_ONCE(ws->tc_changing, true);
		ws_suspend_users(dev);
		ws_delete_tree(dev);
	}
	mutex_unlock(&ws->lock);
}

/* AE code of "catastrophic QP error": the QP's owner moves it to error and closes. */
#define AE_QP_CATASTROPHIC	0x0201

static void ws_resume_user(struct irdma_device *dev, struct irdma_qos_user *user)
{
	struct irdma_cqp_req req = {};
	int lost = ws_attach(dev, user);

	irdma_cqp_prep_resume_qp(dev, &req, user->qpn, user->qs_handle);
	if (irdma_cqp_exec(dev, &req))
		dev_err(&dev->lan->pdev->dev, "QP %u cannot be resumed: %pe\n", user->qpn,
			ERR_PTR(req.status));
	if (!lost)
		return;
	list_del_init(&user->entry);
	memset(&req, 0, sizeof(req));
	irdma_cqp_prep_gen_ae(dev, &req, user->qpn, AE_QP_CATASTROPHIC, 0);
	irdma_cqp_exec(dev, &req);
}

/**
 * irdma_qos_tc_changed - the LAN driver has changed its traffic classes
 * @dev: device
 *
 * Reads the priorities anew and resumes every QP on the queue set that its priority has
 * now.  A QP that cannot get one is moved to error by a generated event.
 *
 * Context: process, sleeps.
 */
void irdma_qos_tc_changed(struct irdma_device *dev)
{
	struct irdma_ws *ws = dev->ws;
	struct irdma_qos_user *user, *next;
	int err;

	mutex_lock(&ws->lock);
	if (ws->tc_changing) {
		err = dev->lan->ops->get_qos(dev->lan, &dev->lan->qos);
		if (err)
			dev_err(&dev->lan->pdev->dev, "priorities not readable: %pe\n",
				ERR_PTR(err));
		list_for_each_entry_safe(user, next, &ws->users, entry)
			ws_resume_user(dev, user);
		WRITE_ONCE(ws->tc_changing, false);
	}
	mutex_unlock(&ws->lock);
	wake_up_all(&ws->wait);
}

/**
 * irdma_qos_start - prepare the scheduler of a device
 * @dev: device
 *
 * Context: process; nothing is sent to hardware before the first user joins.
 * Return: 0 or -ENOMEM.
 */
int irdma_qos_start(struct irdma_device *dev)
{
	struct irdma_ws *ws = kzalloc(sizeof(*ws), GFP_KERNEL);

	if (!ws)
		return -ENOMEM;
	mutex_init(&ws->lock);
	INIT_LIST_HEAD(&ws->users);
	init_waitqueue_head(&ws->wait);
	dev->ws = ws;
	return 0;
}

/**
 * irdma_qos_stop - undo irdma_qos_start()
 * @dev: device; no QP may be joined any more
 *
 * Context: process, sleeps.
 */
void irdma_qos_stop(struct irdma_device *dev)
{
	WARN_ON(!list_empty(&dev->ws->users));
	ws_delete_tree(dev);
	mutex_destroy(&dev->ws->lock);
	kfree(dev->ws);
	dev->ws = NULL;
}
