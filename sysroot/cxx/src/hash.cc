// The compiled part of std::hash and of the unordered containers.
#include <bits/hash_bytes.h>
#include <cstdint>
#include <cstring>
#include <unordered_map>

namespace std {

// MurmurHash2 for 64 bits, by Austin Appleby (public domain).
size_t _Hash_bytes(const void *source, size_t length, size_t seed)
{
	const uint64_t multiplier = 0xc6a4a7935bd1e995;
	auto mix = [](uint64_t v) { return v ^ (v >> 47); };
	const unsigned char *at = static_cast<const unsigned char *>(source), *end = at + (length & ~size_t(7));
	uint64_t hash = seed ^ (length * multiplier);
	for (; at != end; at += 8) {
		uint64_t word;
		memcpy(&word, at, 8);
		hash = (hash ^ mix(word * multiplier) * multiplier) * multiplier;
	}
	if (length & 7) {
		uint64_t word = 0;
		memcpy(&word, at, length & 7);
		hash = (hash ^ word) * multiplier;
	}
	return mix(mix(hash) * multiplier);
}

// FNV-1a for 64 bits.
size_t _Fnv_hash_bytes(const void *source, size_t length, size_t hash)
{
	const unsigned char *at = static_cast<const unsigned char *>(source);
	for (; length; length--)
		hash = (hash ^ *at++) * 1099511628211u;
	return hash;
}

namespace __detail {

namespace {

bool prime(size_t n)
{
	for (size_t d = 3; d * d <= n; d += 2)
		if (n % d == 0)
			return false;
	return n & 1;
}

// The first prime from `least` on: containers ask for twice what they have, so
// the search is rare, and short.
size_t bucket_count(size_t least)
{
	if (least <= 2)
		return 2;
	size_t n = least | 1;
	while (!prime(n))
		n += 2;
	return n;
}

// Elements that fit into that many buckets.
size_t room(size_t buckets, float load)
{
	double most = double(buckets) * double(load);
	return most >= 18446744073709551615.0 ? size_t(-1) : size_t(most);
}

} // namespace

size_t _Prime_rehash_policy::_M_next_bkt(size_t least) const
{
	if (least == 0)
		return 1;
	size_t count = bucket_count(least);
	_M_next_resize = room(count, _M_max_load_factor);
	return count;
}

pair<bool, size_t> _Prime_rehash_policy::_M_need_rehash(size_t buckets, size_t elements, size_t added) const
{
	size_t wanted = elements + added;
	if (wanted <= _M_next_resize)
		return { false, 0 };
	// An empty table starts with room for eleven.
	double least = double(wanted > 11 || _M_next_resize ? wanted : 11) / double(_M_max_load_factor);
	if (least < double(buckets)) {
		_M_next_resize = room(buckets, _M_max_load_factor);
		return { false, 0 };
	}
	size_t doubled = buckets * 2, needed = size_t(least) + 1;
	return { true, _M_next_bkt(needed > doubled ? needed : doubled) };
}

} // namespace __detail
} // namespace std
