// SPDX-License-Identifier: GPL-2.0
/*
 * Calls the libraries of checksums, which nothing else in this kernel calls: an ordinary module for tests, and no part of the
 * patch. The values are those that are published for "123456789".
 */

#include <linux/crc-itu-t.h>
#include <linux/crc4.h>
#include <linux/crc64.h>
#include <linux/crc7.h>
#include <linux/crc8.h>
#include <linux/module.h>

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

static int __init begin(void)
{
	u8 low;

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
