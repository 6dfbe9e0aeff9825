#include "walled_expat.h"
#include <expat.h>
#include <stdio.h>

static void begins(void *user, const XML_Char *name, const XML_Char **attributes)
{
	(void)user;
	for (; attributes[0]; attributes += 2)
		attribute(attributes[0], attributes[1]);
	element_begins(name);
}

static void ends(void *user, const XML_Char *name)
{
	(void)user;
	element_ends(name);
}

static void between(void *user, const XML_Char *letters, int length)
{
	(void)user;
	text(letters, length);
}

int32_t parse(const uint8_t *document, uint64_t length, struct place *found)
{
	XML_Parser parser = XML_ParserCreate(NULL);
	int32_t error = parser ? XML_ERROR_NONE : XML_ERROR_NO_MEMORY;
	if (!parser)
		return error;
	XML_SetElementHandler(parser, begins, ends);
	XML_SetCharacterDataHandler(parser, between);
	do {
		int piece = length > 1 << 20 ? 1 << 20 : (int)length;
		length -= piece;
		if (XML_Parse(parser, (const char *)document, piece, !length) == XML_STATUS_ERROR)
			error = XML_GetErrorCode(parser);
		document += piece;
	} while (length && !error);
	found->line = XML_GetCurrentLineNumber(parser);
	found->column = XML_GetCurrentColumnNumber(parser);
	XML_ParserFree(parser);
	return error;
}

uint64_t explain(int32_t error, char *room, uint64_t size)
{
	const char *said = XML_ErrorString(error);
	return snprintf(room, size, "%s", said ? said : "no error of expat's");
}
