// SPDX-License-Identifier: GPL-2.0
/*
 * Calls libraries that nothing else in these tests calls: an ordinary module, and no part of the patch. Checksums are those that
 * are published for "123456789". Headers of TCP are what they were, behind a serial line of which this plays both ends.
 */

#include <linux/crc-itu-t.h>
#include <linux/crc-t10dif.h>
#include <linux/crc32c.h>
#include <linux/crc4.h>
#include <linux/crc64.h>
#include <linux/crc7.h>
#include <linux/crc8.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/slhc_vj.h>

/* They are there if their modules are. */
#define MAYBE(function) extern typeof(function) function __attribute__((weak))
MAYBE(crc4);
MAYBE(crc64_be);
MAYBE(crc7_be);
MAYBE(crc8);
MAYBE(crc8_populate_lsb);
MAYBE(crc8_populate_msb);
MAYBE(crc_itu_t);
MAYBE(crc_t10dif);
MAYBE(crc32c);
MAYBE(slhc_compress);
MAYBE(slhc_free);
MAYBE(slhc_init);
MAYBE(slhc_remember);
MAYBE(slhc_uncompress);

static u8 table[CRC8_TABLE_SIZE];

/* Not a constant: the compiler would know the results of functions that are pure. */
static u8 text[] = "123456789";

/* A bit at a time, by the polynomial that the library's page names. */
static u8 slow_crc4(u8 crc, u64 value, int bits)
{
	while (bits--) {
		crc ^= ((value >> bits) & 1) << 3;
		crc = crc & 8 ? (crc << 1 ^ 7) & 15 : crc << 1;
	}
	return crc;
}

/* A packet of TCP with so much data; the numbers of a connection go on with each. */
static int packet(u8 *to, unsigned int number, unsigned int data)
{
	struct iphdr *ip = (struct iphdr *)to;
	struct tcphdr *tcp = (struct tcphdr *)(ip + 1);

	memset(to, 0, 40);
	*ip = (struct iphdr) {
		.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_TCP, .id = htons(number),
		.tot_len = htons(40 + data), .saddr = htonl(0x0a070001), .daddr = htonl(0x0a070002),
	};
	ip->check = ip_fast_csum(ip, 5);
	tcp->source = htons(1000);
	tcp->dest = htons(80);
	tcp->seq = htonl(7 + number * 100);
	tcp->ack_seq = htonl(9 + number * 3);
	tcp->doff = 5;
	tcp->ack = 1;
	tcp->window = htons(4096);
	tcp->check = htons(0x1234 + number);
	memset(to + 40, 'a' + number, data);
	return 40 + data;
}

/* How many of the packets come out as they went in, and how many were smaller on their way. */
static void serial_line(unsigned int count)
{
	static u8 in[512], room[512], out[1024];
	struct slcompress *send = slhc_init(16, 16), *receive = slhc_init(16, 16);
	unsigned int right = 0, wrong = 0, small = 0, number;

	for (number = 0; !IS_ERR_OR_NULL(send) && !IS_ERR_OR_NULL(receive) && number < count; number++) {
		int bytes = packet(in, number, number * 7 % 200), sent, got;
		u8 *what = in;

		memcpy(out, in, bytes);
		sent = slhc_compress(send, out, bytes, room, &what, 1);
		/* It was ended: the packet is dropped. */
		if (sent == 0)
			continue;
		if (sent < 0 || sent > bytes || (what != room && what != out)) {
			wrong++;
			continue;
		}
		memmove(out, what == room ? room : out, sent);
		small += sent < bytes;
		if (out[0] & SL_TYPE_COMPRESSED_TCP) {
			got = slhc_uncompress(receive, out, sent);
		} else {
			out[0] &= 0x4f;
			got = slhc_remember(receive, out, sent);
		}
		right += got == bytes && !memcmp(in, out, bytes);
		/* One that cannot be unfolded is dropped, too. */
		wrong += got > 0 && (got != bytes || memcmp(in, out, bytes));
	}
	if (!IS_ERR_OR_NULL(send))
		slhc_free(send);
	if (!IS_ERR_OR_NULL(receive))
		slhc_free(receive);
	pr_err("mullion: serial line: %u packets, %u right, %u smaller, %u wrong\n", number, right, small,
	       wrong);
}

static int __init begin(void)
{
	u8 low;

	if (slhc_init && slhc_compress && slhc_uncompress && slhc_remember && slhc_free)
		serial_line(60);
	if (crc32c && crc_t10dif)
		pr_err("mullion: algorithms:%s%s\n", ~crc32c(~0, text, 9) == 0xe3069283 ? " crc32c" : "",
		       crc_t10dif(text, 9) == 0xd0db ? " crc-t10dif" : "");
	if (!crc4 || !crc7_be || !crc8 || !crc64_be || !crc_itu_t)
		return 0;

	crc8_populate_lsb(table, 0x8c);
	low = crc8(table, text, 9, 0);
	crc8_populate_msb(table, 0x07);
	pr_err("mullion: checksums:%s%s%s%s%s\n",
	       crc4(0, 0x1234567, 28) == slow_crc4(0, 0x1234567, 28) ? " crc4" : "",
	       crc7_be(0, text, 9) == 0x75 << 1 ? " crc7" : "",
	       crc8(table, text, 9, 0) == 0xf4 && low == 0xa1 ? " crc8" : "",
	       crc64_be(0, text, 9) == 0x6c40df5f0b497347 ? " crc64" : "",
	       crc_itu_t(0, text, 9) == 0x31c3 ? " crc-itu-t" : "");
	return 0;
}

static void __exit end(void)
{
}

module_init(begin);
module_exit(end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Calls of walled libraries");
