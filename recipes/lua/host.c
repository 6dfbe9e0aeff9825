/* Lua behind a wall: scripts that compute, ask the host, and fail.
 *     cc host.c $(pkg-config --cflags --libs mullion) -o host && ./host lua.mx */
#include "walled_lua_host.h"
#include <stdio.h>
#include <string.h>

static mullion_status printed(void *user, const char *letters, uint32_t length)
{
	(void)user;
	printf("> %.*s\n", (int)length, letters);
	return MULLION_OK;
}

static mullion_status asked(void *user, int64_t *result, const char *question, char *room, uint64_t size)
{
	(void)user;
	*result = -1;
	if (!strcmp(question, "weather") && size >= 5) {
		memcpy(room, "sunny", 5);
		*result = 5;
	}
	return MULLION_OK;
}

static int try_script(const struct walled_lua_extension *lua, const char *script)
{
	char room[1000];
	int32_t error;
	int64_t length;
	if (walled_lua_run(lua, &error, script)) {
		/* A limit, or a fault. The host has the reason, and goes on. */
		printf("stopped: %s\n", mullion_error_message());
		return 0;
	}
	if (walled_lua_answer(lua, &length, room, sizeof room)) {
		fprintf(stderr, "%s\n", mullion_error_message());
		return 1;
	}
	if (length >= 0 && length <= (int64_t)sizeof room)
		printf("%s %.*s\n", error ? "error:" : "=", (int)length, room);
	return 0;
}

int main(int count, char **words)
{
	struct walled_lua_host functions = { 0 };
	struct walled_lua_extension lua;
	mullion_image image;
	mullion_imports imports;
	mullion_domain domain;

	functions.print_line = printed;
	functions.ask = asked;
	if (mullion_image_open(count > 1 ? words[1] : "lua.mx", &image)
	    || mullion_imports_new(&imports)
	    || walled_lua_offer(imports, &functions)
	    || mullion_domain_load(image, NULL, imports, NULL, &domain)
	    || walled_lua_find(domain, &lua)) {
		fprintf(stderr, "%s\n", mullion_error_message());
		return 1;
	}
	return try_script(&lua, "function square(n) return n * n end print('ready') return square(12)")
	       || try_script(&lua, "return 'it is ' .. host('weather') .. ', ' .. tostring(host('news'))")
	       || try_script(&lua, "return io == nil and os == nil and loadfile == nil")
	       || try_script(&lua, "local t = nil; return t.x");
}
