#include "walled_lua.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <string.h>

static lua_State *state;

static int print(lua_State *L)
{
	luaL_Buffer line;
	int count = lua_gettop(L);
	luaL_buffinit(L, &line);
	for (int i = 1; i <= count; i++) {
		if (i > 1)
			luaL_addchar(&line, '\t');
		luaL_tolstring(L, i, NULL);
		luaL_addvalue(&line);
	}
	luaL_pushresult(&line);
	size_t length;
	const char *letters = lua_tolstring(L, -1, &length);
	print_line(letters, length);
	return 0;
}

static int host(lua_State *L)
{
	char room[4096];
	int64_t length = ask(luaL_checkstring(L, 1), room, sizeof room);
	if (length < 0 || length > (int64_t)sizeof room)
		lua_pushnil(L);
	else
		lua_pushlstring(L, room, length);
	return 1;
}

/* The library without what reads or loads files. */
static lua_State *begin(void)
{
	static const luaL_Reg parts[] = {
		{ LUA_GNAME, luaopen_base },     { LUA_COLIBNAME, luaopen_coroutine }, { LUA_TABLIBNAME, luaopen_table },
		{ LUA_STRLIBNAME, luaopen_string }, { LUA_MATHLIBNAME, luaopen_math },    { LUA_UTF8LIBNAME, luaopen_utf8 },
	};
	lua_State *L = luaL_newstate();
	for (size_t i = 0; L && i < sizeof parts / sizeof *parts; i++) {
		luaL_requiref(L, parts[i].name, parts[i].func, 1);
		lua_pop(L, 1);
	}
	if (L) {
		lua_register(L, "print", print);
		lua_register(L, "host", host);
		lua_pushnil(L);
		lua_setglobal(L, "dofile");
		lua_pushnil(L);
		lua_setglobal(L, "loadfile");
	}
	return L;
}

int32_t run(const char *script)
{
	if (!state && !(state = begin()))
		return LUA_ERRMEM;
	lua_settop(state, 0);
	int error = luaL_loadbufferx(state, script, strlen(script), "=script", "t");
	return error ? error : lua_pcall(state, 0, 1, 0);
}

int64_t answer(char *room, uint64_t size)
{
	size_t length;
	const char *letters;
	if (!state || !lua_gettop(state))
		return 0;
	letters = luaL_tolstring(state, 1, &length);
	if (length <= size)
		memcpy(room, letters, length);
	lua_pop(state, 1);
	return length <= size ? (int64_t)length : -1;
}

void forget(void)
{
	if (state)
		lua_close(state);
	state = NULL;
}
