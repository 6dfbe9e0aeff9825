#include "walled_freetype.h"
#include <ft2build.h>
#include FT_FREETYPE_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FT_Library library;
static FT_Face face;
static uint8_t *font;

int32_t take(const uint8_t *file, uint64_t length)
{
	int32_t error = library ? 0 : FT_Init_FreeType(&library);
	if (error)
		return error;
	if (face)
		FT_Done_Face(face);
	face = NULL;
	free(font);
	/* The host's copy lasts for this call only. */
	font = malloc(length ? length : 1);
	if (!font)
		return FT_Err_Out_Of_Memory;
	memcpy(font, file, length);
	return FT_New_Memory_Face(library, font, length, 0, &face);
}

uint64_t name(char *room, uint64_t size)
{
	if (!face)
		return 0;
	return snprintf(room, size, "%s %s", face->family_name ? face->family_name : "", face->style_name ? face->style_name : "");
}

int32_t render(uint32_t letter, uint32_t pixels, struct glyph *found, uint8_t *grey, uint64_t size)
{
	FT_UInt index;
	FT_GlyphSlot slot;
	int32_t error;
	memset(found, 0, sizeof *found);
	if (!face)
		return FT_Err_Invalid_Face_Handle;
	if ((error = FT_Set_Pixel_Sizes(face, 0, pixels)))
		return error;
	index = FT_Get_Char_Index(face, letter);
	if ((error = FT_Load_Glyph(face, index, FT_LOAD_DEFAULT)) || (error = FT_Render_Glyph(face->glyph, FT_RENDER_MODE_NORMAL)))
		return error;
	slot = face->glyph;
	found->width = slot->bitmap.width;
	found->height = slot->bitmap.rows;
	found->left = slot->bitmap_left;
	found->top = slot->bitmap_top;
	found->advance = slot->advance.x;
	found->known = index != 0;
	if ((uint64_t)found->width * found->height > size)
		return -1;
	for (uint32_t row = 0; row < found->height; row++) {
		const uint8_t *line = slot->bitmap.buffer + (int64_t)row * slot->bitmap.pitch;
		for (uint32_t column = 0; column < found->width; column++)
			*grey++ = slot->bitmap.pixel_mode == FT_PIXEL_MODE_MONO
			              ? (line[column / 8] & 0x80 >> column % 8 ? 255 : 0)
			              : line[column];
	}
	return 0;
}
