// SPDX-License-Identifier: GPL-2.0
/*
 * Network devices of modules behind Mullion's word wall: an ordinary module, and no part of the patch.
 *
 * A packet is the driver's from the call of `ndo_start_xmit` until the driver frees it or hands it on, and nobody else's:
 * the kernel calls a function of ours, which lends the packet first. When the driver is ended, its devices drop packets at
 * once. A little later they go, and the driver's own packets are freed.
 *
 * A walled driver does not poll: the kernel's structures for that (`napi_struct`) would lie in memory that the driver may write.
 * So its devices have no XDP, and nobody can switch on that packets are put together when they are received (GRO).
 */

#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <net/rtnetlink.h>
#include <linux/slab.h>

/* Where a packet is: the structure, and the memory that its bytes are in, with what describes their fragments. */
struct mullion_packet {
	unsigned long skb;
	unsigned long skb_bytes;
	unsigned long head;
	unsigned long head_bytes;
	/* Behind the bytes: what the kernel follows. */
	unsigned long end;
	/* Others have these bytes, too. */
	unsigned long is_shared;
};

/* Where they begin and end, and where the private memory begins. */
struct mullion_fields {
	unsigned long first;
	unsigned long end;
	unsigned long private;
	/* The kernel's count of packets, which the driver adds to: where, and how many bytes. */
	unsigned long counts;
	unsigned long count_bytes;
};

/* What the library and this module tell each other. */
struct mullion_net {
	/* Of this module. */
	void (*look)(struct sk_buff *skb, struct mullion_packet *packet);
	void (*kill)(unsigned long domain);
	void (*undo)(unsigned long domain);
	int (*is_device)(unsigned long domain, struct net_device *dev);
	void (*free)(struct sk_buff *skb);
	/* Whether what a device says of its functions is the module's own data. */
	int (*fits)(unsigned long domain, struct net_device *dev);
	/* What of a registered device the module may write: numbers that the kernel does not follow, and its private memory. */
	void (*fields)(struct net_device *dev, struct mullion_fields *fields);
	/* Of the library: the module in whose data so many bytes lie, or 0. */
	unsigned long (*owner)(unsigned long address, unsigned long bytes);
	void (*lend)(unsigned long domain, const struct mullion_packet *packet);
	/* The packet is the kernel's again. 0: the module did not have it any more. */
	int (*back)(unsigned long domain, unsigned long skb);
	/* The device at this address is registered; its counts have gone, and it goes next. */
	void (*device)(unsigned long domain, unsigned long start);
	void (*gone)(unsigned long domain, unsigned long start);
	/* What the module has left in this task: how much, and an end to it if there is more. */
	unsigned long (*marks)(unsigned long domain);
	void (*leaves)(unsigned long domain, unsigned long before);
	/* Whether the kernel may call it with these arguments. */
	int (*may_call)(unsigned long domain, unsigned long function, const struct mullion_argument *arguments);
};

/* A device of a walled module; `ops` is what the kernel calls. */
struct watched {
	struct list_head all;
	struct net_device *dev;
	unsigned long domain;
	/* It is registered. */
	bool is_in;
	/* The module's, as they were when the device was registered. */
	netdev_tx_t (*xmit)(struct sk_buff *skb, struct net_device *dev);
	struct net_device *(*get_peer)(struct net_device *dev);
	void (*destructor)(struct net_device *dev);
	struct net_device_ops ops;
	struct ethtool_ops ethtool;
	struct header_ops header;
	struct rcu_head late;
};

extern struct mullion_net mullion_net;

static LIST_HEAD(devices);

static void look(struct sk_buff *skb, struct mullion_packet *packet)
{
	packet->skb = (unsigned long)skb;
	packet->skb_bytes = sizeof(*skb);
	packet->head = (unsigned long)skb->head;
	packet->head_bytes = skb_end_offset(skb) + sizeof(struct skb_shared_info);
	packet->end = (unsigned long)skb_end_pointer(skb);
	packet->is_shared = skb_cloned(skb) || skb_shared(skb);
}

static int is_device(unsigned long domain, struct net_device *dev)
{
	struct watched *watched;

	list_for_each_entry(watched, &devices, all)
		if (watched->dev == dev)
			return watched->is_in && watched->domain == domain;
	return 0;
}

static int is_of(unsigned long domain, const void *what, unsigned long bytes)
{
	return mullion_net.owner((unsigned long)what, bytes) == domain;
}

/* Tables of the kernel's that every device of Ethernet has. */
static const struct ethtool_ops *usual_ethtool;
static const struct header_ops *usual_header;

/* What these functions of a table are lent. All others are lent nothing. */
struct slot {
	unsigned long at;
	struct mullion_argument arguments[6];
};

#define SLOT(table, name, ...) { offsetof(struct table, name), { __VA_ARGS__ } }

static const struct slot net_slots[] = {
	/* The device is not registered yet. */
	SLOT(net_device_ops, ndo_init, WRITES(sizeof(struct net_device))),
	SLOT(net_device_ops, ndo_get_stats64, {}, WRITES(sizeof(struct rtnl_link_stats64))),
	{ ULONG_MAX }
};
static const struct slot ethtool_slots[] = {
	SLOT(ethtool_ops, get_drvinfo, {}, WRITES(sizeof(struct ethtool_drvinfo))),
	SLOT(ethtool_ops, get_link_ksettings, {}, WRITES(sizeof(struct ethtool_link_ksettings))),
	SLOT(ethtool_ops, get_channels, {}, WRITES(sizeof(struct ethtool_channels))),
	/* As many as the module has said that there are. The library does not know how many those were. */
	SLOT(ethtool_ops, get_strings, {}, {}, WRITES(PAGE_SIZE)),
	SLOT(ethtool_ops, get_ethtool_stats, {}, WRITES(PAGE_SIZE), WRITES(PAGE_SIZE)),
	{ ULONG_MAX }
};
static const struct slot no_slots[] = { { ULONG_MAX } };

static bool is_function(unsigned long domain, unsigned long function, const struct slot *slots, unsigned long at)
{
	while (slots->at != at && slots->at != ULONG_MAX)
		slots++;
	return mullion_net.may_call(domain, function, slots->arguments);
}

/* Each of these words is a function of the module's, or null. One that is not goes, if the table is a copy of ours. */
static bool are_functions(unsigned long domain, const void *table, const struct slot *slots, unsigned long first,
			  unsigned long bytes, bool is_ours)
{
	unsigned long at, *word;
	bool are = true;

	for (at = first; at < bytes; at += sizeof(*word)) {
		word = (unsigned long *)(table + at);
		if (!*word || is_function(domain, *word, slots, at))
			continue;
		are = false;
		if (is_ours)
			*word = 0;
	}
	return are;
}

/* Numbers come first. */
#define FIRST_OF_ETHTOOL offsetof(struct ethtool_ops, get_drvinfo)

static bool fits_table(unsigned long domain, const void *table, const struct slot *slots, unsigned long first,
		       unsigned long bytes)
{
	return is_of(domain, table, bytes) && are_functions(domain, table, slots, first, bytes, false);
}

/* The kernel follows these at once. */
static int fits(unsigned long domain, struct net_device *dev)
{
	const struct ethtool_ops *ethtool = dev->ethtool_ops;
	const struct header_ops *header = dev->header_ops;

	return fits_table(domain, dev->netdev_ops, net_slots, 0, sizeof(*dev->netdev_ops)) &&
	       (!ethtool || ethtool == usual_ethtool || fits_table(domain, ethtool, ethtool_slots, FIRST_OF_ETHTOOL,
							       sizeof(*ethtool))) &&
	       (!header || header == usual_header || fits_table(domain, header, no_slots, 0, sizeof(*header))) &&
	       (!dev->priv_destructor || is_function(domain, (unsigned long)dev->priv_destructor, no_slots, 0));
}

static void fields(struct net_device *dev, struct mullion_fields *fields)
{
	fields->first = (unsigned long)&dev->mtu;
	fields->end = (unsigned long)(&dev->stats + 1);
	fields->private = (unsigned long)netdev_priv(dev);
	fields->counts = (unsigned long)this_cpu_ptr(dev->tstats);
	fields->count_bytes = dev->pcpu_stat_type == NETDEV_PCPU_STAT_LSTATS ? sizeof(*dev->lstats) :
			      dev->pcpu_stat_type == NETDEV_PCPU_STAT_TSTATS ? sizeof(*dev->tstats) :
			      dev->pcpu_stat_type == NETDEV_PCPU_STAT_DSTATS ? sizeof(*dev->dstats) : 0;
}

static void free_packet(struct sk_buff *skb)
{
	kfree_skb(skb);
}

static netdev_tx_t dead_xmit(struct sk_buff *skb, struct net_device *dev)
{
	dev->stats.tx_dropped++;
	kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops dead_ops = {
	.ndo_start_xmit = dead_xmit,
};
static const struct ethtool_ops dead_ethtool;

static netdev_tx_t xmit(struct sk_buff *skb, struct net_device *dev)
{
	const struct net_device_ops *ops = dev->netdev_ops;
	struct watched *watched = container_of(ops, struct watched, ops);
	unsigned long domain = watched->domain, before;
	struct mullion_packet packet;
	netdev_tx_t result;

	look(skb, &packet);
	mullion_net.lend(domain, &packet);
	before = mullion_net.marks(domain);
	result = watched->xmit(skb, dev);
	mullion_net.leaves(domain, before);
	/* A driver that is busy has left the packet to us. What it has freed, or keeps, is no packet of ours. */
	if (result == NETDEV_TX_BUSY && mullion_net.back(domain, (unsigned long)skb))
		return NETDEV_TX_BUSY;
	/* It was taken, and not sent. */
	return result == NET_XMIT_DROP || result == NET_XMIT_CN ? result : NETDEV_TX_OK;
}

static struct watched *find(const struct net_device *dev)
{
	struct watched *watched;

	list_for_each_entry(watched, &devices, all)
		if (watched->dev == dev)
			return watched;
	return NULL;
}

/* The kernel follows it: a device of the same driver. */
static struct net_device *get_peer_dev(struct net_device *dev)
{
	struct watched *watched = find(dev);
	struct net_device *peer = watched ? watched->get_peer(dev) : NULL;

	return peer && is_device(watched->domain, peer) ? peer : NULL;
}

/* The kernel has freed the counts, and frees the device next. */
static void destruct(struct net_device *dev)
{
	struct watched *watched = find(dev);

	if (!watched)
		return;
	mullion_net.gone(watched->domain, (unsigned long)dev);
	if (watched->destructor)
		watched->destructor(dev);
	list_del(&watched->all);
	kfree_rcu(watched, late);
}

static void watch(struct net_device *dev)
{
	const struct net_device_ops *ops = dev->netdev_ops;
	unsigned long domain = mullion_net.owner ? mullion_net.owner((unsigned long)ops, sizeof(*ops)) : 0;
	struct watched *watched = find(dev);

	/* It comes from another name space. */
	if (watched && ops == &watched->ops)
		watched->is_in = true;
	if (!domain || watched)
		return;
	watched = kzalloc(sizeof(*watched), GFP_KERNEL | __GFP_NOFAIL);
	watched->dev = dev;
	watched->domain = domain;
	watched->is_in = true;
	/* The module may have changed its tables since somebody looked: what counts are these copies. */
	watched->ops = *dev->netdev_ops;
	are_functions(domain, &watched->ops, net_slots, 0, sizeof(watched->ops), true);
	watched->xmit = watched->ops.ndo_start_xmit;
	watched->ops.ndo_start_xmit = watched->xmit ? xmit : dead_xmit;
	watched->get_peer = watched->ops.ndo_get_peer_dev;
	if (watched->get_peer)
		watched->ops.ndo_get_peer_dev = get_peer_dev;
	if (dev->ethtool_ops && dev->ethtool_ops != usual_ethtool) {
		if (is_of(domain, dev->ethtool_ops, sizeof(watched->ethtool)))
			watched->ethtool = *dev->ethtool_ops;
		are_functions(domain, &watched->ethtool, ethtool_slots, FIRST_OF_ETHTOOL, sizeof(watched->ethtool), true);
		dev->ethtool_ops = &watched->ethtool;
	}
	if (dev->header_ops && dev->header_ops != usual_header) {
		if (is_of(domain, dev->header_ops, sizeof(watched->header)))
			watched->header = *dev->header_ops;
		are_functions(domain, &watched->header, no_slots, 0, sizeof(watched->header), true);
		dev->header_ops = &watched->header;
	}
	/* These would hand pointers to the kernel, or buffers to the driver. */
	watched->ops.ndo_get_xmit_slave = NULL;
	watched->ops.ndo_sk_get_lower_dev = NULL;
	watched->ops.ndo_xdp_get_xmit_slave = NULL;
	watched->ops.ndo_dfwd_add_station = NULL;
	watched->ops.ndo_bpf = NULL;
	watched->ops.ndo_xdp_xmit = NULL;
	dev->hw_features &= ~NETIF_F_GRO;
	if (is_function(domain, (unsigned long)dev->priv_destructor, no_slots, 0))
		watched->destructor = dev->priv_destructor;
	dev->priv_destructor = destruct;
	list_add(&watched->all, &devices);
	dev->netdev_ops = &watched->ops;
	mullion_net.device(domain, (unsigned long)dev);
}

/* Nobody sends by it any more, and its functions are called once more. */
static void unwatch(struct net_device *dev)
{
	struct watched *watched = find(dev);

	if (!watched)
		return;
	watched->is_in = false;
}

static int changed(struct notifier_block *block, unsigned long event, void *what)
{
	struct net_device *dev = netdev_notifier_info_to_dev(what);

	if (event == NETDEV_REGISTER)
		watch(dev);
	else if (event == NETDEV_UNREGISTER)
		unwatch(dev);
	return NOTIFY_DONE;
}

static struct notifier_block block = { .notifier_call = changed };

/* At once, in the task whose call was ended: nothing of the module is called from then on. */
static void kill(unsigned long domain)
{
	struct watched *watched;

	list_for_each_entry(watched, &devices, all) {
		struct net_device *dev = watched->dev;

		if (watched->domain != domain)
			continue;
		dev->netdev_ops = &dead_ops;
		dev->ethtool_ops = &dead_ethtool;
		dev->rtnl_link_ops = NULL;
		watched->destructor = NULL;
		dev->needs_free_netdev = true;
		if (dev->header_ops != usual_header)
			dev->header_ops = NULL;
	}
}

/* Later: the devices go. */
static void undo(unsigned long domain)
{
	struct watched *watched;
	LIST_HEAD(gone);

	rtnl_lock();
	kill(domain);
	list_for_each_entry(watched, &devices, all)
		if (watched->domain == domain && watched->dev->reg_state == NETREG_REGISTERED)
			unregister_netdevice_queue(watched->dev, &gone);
	unregister_netdevice_many(&gone);
	rtnl_unlock();
}

struct mullion_net mullion_net = {
	.look = look,
	.kill = kill,
	.undo = undo,
	.is_device = is_device,
	.free = free_packet,
	.fits = fits,
	.fields = fields,
};
EXPORT_SYMBOL_GPL(mullion_net);

static int __init begin(void)
{
	struct net_device *dev = alloc_etherdev(0);

	if (!dev)
		return -ENOMEM;
	usual_ethtool = dev->ethtool_ops;
	usual_header = dev->header_ops;
	free_netdev(dev);
	return register_netdevice_notifier(&block);
}

module_init(begin);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Network devices of walled modules");
