/* How many bits below the sign bit are copies of it. gcc's names count words, not bits: "di" is 64 bits on this machine,
 * "ti" 128. */
int __clrsbdi2(long value)
{
	unsigned long other = (unsigned long)(value ^ value >> 63);
	return other ? __builtin_clzl(other) - 1 : 63;
}

int __clrsbti2(__int128 value)
{
	unsigned __int128 other = (unsigned __int128)(value ^ value >> 127);
	unsigned long high = (unsigned long)(other >> 64), low = (unsigned long)other;
	return high ? __builtin_clzl(high) - 1 : low ? __builtin_clzl(low) + 63 : 127;
}
