// SPDX-License-Identifier: GPL-2.0
/*
 * Kinds of network devices of modules behind Mullion's word wall (`rtnl_link_ops`): an ordinary module, and no part of the patch.
 *
 * The kernel's list has a structure of ours for each kind, and calls functions of ours, which call the module's. So what the
 * kernel follows does not lie in memory that the module may write. While a device is made by a message, these are the kernel's
 * own, whatever pointers the module hands on: the message's attributes, the list of devices that go, the network name space.
 *
 * All of it happens under the lock of networks.
 */

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/rtnetlink.h>

enum { MOST_ATTRIBUTES = 16, MOST_PRIVATE = 1 << 20 };

/* What the library asks for, by its arguments: `links.rs` has the same numbers. */
enum what { ADD, ADD_LOCKED, REMOVE, REMOVE_LOCKED, PARSE, FIND_NET, CREATE, CONFIGURE, COPY_TEXT, UNREGISTER };

/* What the library and this module tell each other. */
struct mullion_links {
	/* Of this module. Not 0: an argument is not what it has to be. */
	int (*call)(unsigned long domain, int what, const unsigned long *arguments, unsigned long *result);
	/* Whether the kind that a device names is the module's own. It is ours from then on. */
	int (*fits)(unsigned long domain, struct net_device *dev);
	/* Nothing of the module is called from then on. */
	void (*kill)(unsigned long domain);
	/* Of the library: the module in whose data so many bytes lie, or 0. */
	unsigned long (*owner)(unsigned long address, unsigned long bytes);
	int (*may_call)(unsigned long domain, unsigned long function, const struct mullion_argument *arguments);
	/* Whether what a device says of its functions is the module's own. */
	int (*may_register)(unsigned long domain, struct net_device *dev);
	/* A new device is the module's, until it is registered or the call is over. */
	void (*has)(unsigned long domain, struct net_device *dev);
	void (*had)(unsigned long domain, struct net_device *dev);
	/* A message may be read during a call. */
	void (*shows)(unsigned long domain, unsigned long start, unsigned long bytes);
	void (*hides)(unsigned long domain);
};

/* A kind of a walled module. */
struct kind {
	struct list_head all;
	unsigned long domain;
	bool is_dead;
	/* The module's, as it was when it was registered, and where it was. */
	struct rtnl_link_ops own;
	unsigned long at;
	char name[32];
	struct nla_policy policy[MOST_ATTRIBUTES];
	/* The kernel's. */
	struct rtnl_link_ops ops;
};

/* A device that is being made by a message. */
struct making {
	unsigned long domain;
	struct net *net;
	struct nlattr **tb;
	struct nlattr **data;
	unsigned int types;
	struct netlink_ext_ack *extack;
	/* Another device's attributes in that message: ours, and where the module has its copy. */
	struct nlattr *parsed[IFLA_MAX + 1];
	unsigned long copy;
	struct nlattr *parent;
};

extern struct mullion_links mullion_links;

static LIST_HEAD(kinds);
static struct making *making;
/* The devices that go together, while a module is asked to let one go. */
static struct list_head *leaving;

static struct kind *kind_of(const struct rtnl_link_ops *ops)
{
	return container_of(ops, struct kind, ops);
}

static struct kind *find(unsigned long domain, unsigned long at)
{
	struct kind *kind;

	list_for_each_entry(kind, &kinds, all)
		if (kind->domain == domain && (kind->at == at || (unsigned long)&kind->ops == at))
			return kind;
	return NULL;
}

/* The attributes lie in one message: from the first of them to the last. */
static void shows(struct kind *kind, struct nlattr *tb[])
{
	unsigned long start = ULONG_MAX, end = 0;
	int at;

	for (at = 0; at <= IFLA_MAX; at++) {
		if (!tb[at])
			continue;
		start = min(start, (unsigned long)tb[at]);
		end = max(end, (unsigned long)tb[at] + nla_total_size(nla_len(tb[at])));
	}
	mullion_links.shows(kind->domain, start, end > start ? end - start : 0);
}

static int validate_of(struct kind *kind, struct nlattr *tb[], struct nlattr *data[], struct netlink_ext_ack *extack)
{
	int error;

	if (kind->is_dead)
		return -ENODEV;
	if (!kind->own.validate)
		return 0;
	shows(kind, tb);
	error = kind->own.validate(tb, data, extack);
	mullion_links.hides(kind->domain);
	return error;
}

static int newlink(struct net *net, struct net_device *dev, struct nlattr *tb[], struct nlattr *data[],
		   struct netlink_ext_ack *extack)
{
	struct kind *kind = kind_of(dev->rtnl_link_ops);
	struct making *before = making, *now = kzalloc(sizeof(*now), GFP_KERNEL);
	int error;

	if (!now)
		return -ENOMEM;
	error = validate_of(kind, tb, data, extack);
	if (error)
		goto out;
	now->domain = kind->domain;
	now->net = net;
	now->tb = tb;
	now->data = data;
	now->types = kind->ops.maxtype;
	now->extack = extack;
	making = now;
	mullion_links.has(kind->domain, dev);
	shows(kind, tb);
	if (kind->own.newlink)
		error = kind->own.newlink(net, dev, tb, data, extack);
	else
		error = mullion_links.may_register(kind->domain, dev) ? register_netdevice(dev) : -EINVAL;
	mullion_links.hides(kind->domain);
	mullion_links.had(kind->domain, dev);
	making = before;
	/* What the module says need not be what it has done. */
	if (error >= 0)
		error = dev->reg_state == NETREG_REGISTERED ? 0 : -EINVAL;
	else if (dev->reg_state == NETREG_REGISTERED)
		unregister_netdevice(dev);
out:
	kfree(now);
	return error;
}

static void dellink(struct net_device *dev, struct list_head *head)
{
	struct kind *kind = kind_of(dev->rtnl_link_ops);
	struct list_head *before = leaving;

	if (!kind->is_dead && kind->own.dellink) {
		leaving = head;
		kind->own.dellink(dev, NULL);
		leaving = before;
	}
	/* It goes, whatever the module has done. */
	if (dev->reg_state == NETREG_REGISTERED)
		unregister_netdevice_queue(dev, head);
}

/* The kernel follows it: one that there is. */
static struct net *get_link_net(const struct net_device *dev)
{
	struct kind *kind = kind_of(dev->rtnl_link_ops);
	struct net *net, *said = kind->is_dead ? NULL : kind->own.get_link_net(dev), *found = dev_net(dev);

	rcu_read_lock();
	for_each_net_rcu(net)
		if (net == said)
			found = net;
	rcu_read_unlock();
	return found;
}

static void dead_setup(struct net_device *dev)
{
}

static unsigned long is_own(unsigned long domain, const void *what, unsigned long bytes)
{
	return mullion_links.owner((unsigned long)what, bytes) == domain;
}

static bool copies_name(struct kind *kind)
{
	int at;

	for (at = 0; at < sizeof(kind->name) - 1; at++) {
		if (!is_own(kind->domain, kind->own.kind + at, 1))
			return false;
		kind->name[at] = kind->own.kind[at];
		if (!kind->name[at])
			return true;
	}
	return false;
}

/* Lengths and numbers alone: no entry has a pointer. */
static bool copies_policy(struct kind *kind)
{
	const struct nla_policy *policy = kind->own.policy;
	unsigned int at, count = kind->own.maxtype + 1;

	if (!policy)
		return !kind->own.maxtype;
	if (count > MOST_ATTRIBUTES || !is_own(kind->domain, policy, count * sizeof(*policy)))
		return false;
	memcpy(kind->policy, policy, count * sizeof(*policy));
	for (at = 0; at < count; at++) {
		u8 type = kind->policy[at].type;

		if (kind->policy[at].validation_type != NLA_VALIDATE_NONE || type > NLA_TYPE_MAX || type == NLA_NESTED ||
		    type == NLA_NESTED_ARRAY || type == NLA_REJECT || type == NLA_BITFIELD32)
			return false;
	}
	return true;
}

#define IS_FUNCTION(kind, name, ...) ({ \
	const struct mullion_argument arguments[6] = { __VA_ARGS__ }; \
	\
	!(kind)->own.name || mullion_links.may_call((kind)->domain, (unsigned long)(kind)->own.name, arguments); \
})

/* The tables of attributes. */
#define ATTRIBUTES READS((IFLA_MAX + 1) * sizeof(struct nlattr *))
#define OWN_ATTRIBUTES READS((kind->own.maxtype + 1) * sizeof(struct nlattr *))

/* Whether the kernel may follow it. Kinds with more than this are not known here. */
static bool is_right(struct kind *kind)
{
	const struct rtnl_link_ops *own = &kind->own;
	bool has_more = own->alloc || own->changelink || own->get_size || own->fill_info || own->get_xstats_size ||
			own->fill_xstats || own->slave_maxtype || own->slave_policy || own->slave_changelink ||
			own->get_slave_size || own->fill_slave_info || own->get_linkxstats_size || own->fill_linkxstats;

	/* The kernel adds to it in 32 bits. */
	if (own->priv_size > MOST_PRIVATE || own->maxtype >= MOST_ATTRIBUTES)
		return false;
	return !has_more && own->setup && copies_name(kind) && copies_policy(kind) &&
	       IS_FUNCTION(kind, setup, WRITES(sizeof(struct net_device))) &&
	       IS_FUNCTION(kind, validate, ATTRIBUTES, OWN_ATTRIBUTES) &&
	       IS_FUNCTION(kind, newlink, {}, {}, ATTRIBUTES, OWN_ATTRIBUTES) && IS_FUNCTION(kind, dellink) &&
	       IS_FUNCTION(kind, get_num_tx_queues) && IS_FUNCTION(kind, get_num_rx_queues) &&
	       IS_FUNCTION(kind, get_link_net);
}

static int add(unsigned long domain, unsigned long at, bool is_locked, unsigned long *result)
{
	struct kind *kind;
	int error;

	if (!is_own(domain, (void *)at, sizeof(kind->own)) || find(domain, at))
		return 1;
	kind = kzalloc(sizeof(*kind), GFP_KERNEL | __GFP_NOFAIL);
	kind->domain = domain;
	kind->own = *(struct rtnl_link_ops *)at;
	kind->at = at;
	if (!is_right(kind)) {
		kfree(kind);
		return 1;
	}
	kind->ops.kind = kind->name;
	kind->ops.priv_size = kind->own.priv_size;
	kind->ops.setup = kind->own.setup;
	kind->ops.netns_refund = kind->own.netns_refund;
	kind->ops.maxtype = kind->own.maxtype;
	kind->ops.policy = kind->own.policy ? kind->policy : NULL;
	kind->ops.newlink = newlink;
	kind->ops.dellink = dellink;
	kind->ops.get_num_tx_queues = kind->own.get_num_tx_queues;
	kind->ops.get_num_rx_queues = kind->own.get_num_rx_queues;
	if (kind->own.get_link_net)
		kind->ops.get_link_net = get_link_net;
	list_add(&kind->all, &kinds);
	error = is_locked ? __rtnl_link_register(&kind->ops) : rtnl_link_register(&kind->ops);
	if (error) {
		list_del(&kind->all);
		kfree(kind);
	}
	*result = error;
	return 0;
}

static int remove(struct kind *kind, bool is_locked)
{
	if (!kind)
		return 1;
	if (is_locked)
		__rtnl_link_unregister(&kind->ops);
	else
		rtnl_link_unregister(&kind->ops);
	list_del(&kind->all);
	kfree(kind);
	return 0;
}

/* The module was ended. */
void mullion_undo_link(unsigned long at, unsigned long domain)
{
	remove(find(domain, at), false);
}
EXPORT_SYMBOL_GPL(mullion_undo_link);

/* A reference to a name space of networks. */
void mullion_put_net(struct net *net)
{
	put_net(net);
}
EXPORT_SYMBOL_GPL(mullion_put_net);

static struct nlattr **attributes(unsigned long own)
{
	if (own && own == (unsigned long)making->tb)
		return making->tb;
	return own && own == making->copy ? making->parsed : NULL;
}

/* The attribute that holds another device's is one of this message. */
static int parse(const unsigned long *arguments, unsigned long *result)
{
	struct nlattr *attribute = (struct nlattr *)arguments[1];
	unsigned int at;

	for (at = 0; making->data && at <= making->types; at++)
		if (attribute && making->data[at] == attribute)
			break;
	if (!making->data || at > making->types || nla_len(attribute) < (int)sizeof(struct ifinfomsg))
		return 1;
	*result = rtnl_nla_parse_ifinfomsg(making->parsed, attribute, making->extack);
	/* The library has looked at as many bytes. */
	BUILD_BUG_ON(sizeof(making->parsed) != 496);
	making->copy = (int)*result < 0 ? 0 : arguments[0];
	making->parent = attribute;
	memcpy((void *)arguments[0], making->parsed, sizeof(making->parsed));
	return 0;
}

static int copies_text(const unsigned long *arguments, unsigned long *result)
{
	struct nlattr *attribute = (struct nlattr *)arguments[1];
	int at;

	for (at = 0; at <= IFLA_MAX; at++) {
		bool is_it = attribute && (attribute == making->tb[at] || (making->copy && attribute == making->parsed[at]));

		if (!is_it)
			continue;
		*result = nla_strscpy((char *)arguments[0], attribute, arguments[2]);
		return 0;
	}
	return 1;
}

static int create(unsigned long domain, const unsigned long *arguments, unsigned long *result)
{
	struct kind *kind = find(domain, arguments[3]);
	struct nlattr **tb = attributes(arguments[4]);
	char name[IFNAMSIZ];

	if (!kind || !tb)
		return 1;
	strscpy(name, (const char *)arguments[1], sizeof(name));
	*result = (unsigned long)rtnl_create_link((struct net *)arguments[0], name, arguments[2], &kind->ops, tb, making->extack);
	return 0;
}

static int configure(const unsigned long *arguments, unsigned long *result)
{
	const struct ifinfomsg *own = (const struct ifinfomsg *)arguments[1];

	if (own && !(making->parent && own == nla_data(making->parent)))
		return 1;
	*result = rtnl_configure_link((struct net_device *)arguments[0], own, 0, NULL);
	return 0;
}

static int unregister(struct net_device *dev)
{
	if (!rtnl_is_locked() || dev->reg_state != NETREG_REGISTERED)
		return 1;
	unregister_netdevice_queue(dev, leaving);
	return 0;
}

static int call(unsigned long domain, int what, const unsigned long *arguments, unsigned long *result)
{
	bool is_making = making && making->domain == domain;

	*result = 0;
	switch (what) {
	case ADD:
	case ADD_LOCKED:
		return add(domain, arguments[0], what == ADD_LOCKED, result);
	case REMOVE:
	case REMOVE_LOCKED:
		return remove(find(domain, arguments[0]), what == REMOVE_LOCKED);
	case UNREGISTER:
		return unregister((struct net_device *)arguments[0]);
	case PARSE:
		return is_making ? parse(arguments, result) : 1;
	case FIND_NET:
		if (!is_making || !attributes(arguments[1]))
			return 1;
		*result = (unsigned long)rtnl_link_get_net(making->net, attributes(arguments[1]));
		return 0;
	case CREATE:
		return is_making ? create(domain, arguments, result) : 1;
	case CONFIGURE:
		return is_making ? configure(arguments, result) : 1;
	case COPY_TEXT:
		return is_making ? copies_text(arguments, result) : 1;
	}
	return 1;
}

static int fits(unsigned long domain, struct net_device *dev)
{
	struct kind *kind = find(domain, (unsigned long)dev->rtnl_link_ops);

	if (dev->rtnl_link_ops && kind)
		dev->rtnl_link_ops = &kind->ops;
	return !dev->rtnl_link_ops || kind;
}

static void kill(unsigned long domain)
{
	struct kind *kind;

	list_for_each_entry(kind, &kinds, all) {
		if (kind->domain != domain)
			continue;
		kind->is_dead = true;
		kind->ops.setup = dead_setup;
		kind->ops.get_num_tx_queues = NULL;
		kind->ops.get_num_rx_queues = NULL;
	}
}

struct mullion_links mullion_links = {
	.call = call,
	.fits = fits,
	.kill = kill,
};
EXPORT_SYMBOL_GPL(mullion_links);

static int __init begin(void)
{
	return 0;
}

module_init(begin);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Kinds of network devices of walled modules");
