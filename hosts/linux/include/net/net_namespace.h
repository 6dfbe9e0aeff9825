/* References to name spaces of networks, for walled modules; found before the kernel's own header. That one counts in the name
 * space's structure, in line. These are calls, and the wall notes whose each reference is. */
#ifndef MULLION_NET_NET_NAMESPACE_H
#define MULLION_NET_NET_NAMESPACE_H

#define put_net mullion_put_net_in_line
#include_next <net/net_namespace.h>
#undef put_net

extern void mullion_put_net(struct net *net);
#define put_net mullion_put_net

#endif
