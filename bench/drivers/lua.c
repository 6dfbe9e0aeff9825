/* Lua: the scripts on standard input return a table of functions; each iteration
 * makes a new state, loads them, runs every one and adds up the integers they
 * return. Without libraries that reach outside (io, os, package). */
#include "bench.h"
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

static const char *source;
static size_t length;

static void complain(lua_State *state) {
    fprintf(stderr, "bench: lua: %s\n", lua_tostring(state, -1));
    exit(2);
}

static void open_libraries(lua_State *state) {
    static const luaL_Reg libraries[] = {{"_G", luaopen_base},
                                         {LUA_TABLIBNAME, luaopen_table},
                                         {LUA_STRLIBNAME, luaopen_string},
                                         {LUA_MATHLIBNAME, luaopen_math}};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        luaL_requiref(state, libraries[i].name, libraries[i].func, 1);
        lua_pop(state, 1);
    }
}

static uint64_t once(uint64_t i) {
    uint64_t sum = 0;
    lua_State *state = luaL_newstate();
    if (!state)
        exit(2);
    open_libraries(state);
    if (luaL_loadbuffer(state, source, length, "=scripts") || lua_pcall(state, 0, 1, 0))
        complain(state);
    int scripts = lua_gettop(state), count = (int)luaL_len(state, scripts);
    for (int script = 1; script <= count; script++) {
        lua_rawgeti(state, scripts, script);
        lua_pushinteger(state, (lua_Integer)(i % 8));
        if (lua_pcall(state, 1, 1, 0))
            complain(state);
        sum = bench_mix(sum, (uint64_t)lua_tointeger(state, -1));
        lua_pop(state, 1);
    }
    lua_close(state);
    return sum;
}

BENCH_MAIN(source = (const char *)bench_input(&length), once(i))
