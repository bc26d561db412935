# SPDX-License-Identifier: BSD-3-Clause
# Prints a line "FILE: SENTENCE" for each source file: the first sentence of the comment at its
# beginning, which says what the file does; nothing for "see NAME.h". `make files` runs it.
function end_file() {
	if (begun && !said)
		print name ":"
	said = 1
}
FNR == 1 {
	end_file()
	name = base = FILENAME
	sub(/.*\//, "", base)
	begun = 1
	said = quoted = 0
	text = ""
}
said || /SPDX|^#!|^\/\*$/ { next }
{
	quoted = quoted || /^"""/
	comment = quoted || /^[[:space:]]*(\/\*|\*|\/\/|#|!)/
	line = comment ? $0 : ""
	gsub(/^[[:space:]]*(\/\*|\*\/|\*|\/\/|#|!|""")?[[:space:]]*|[[:space:]]*(\*\/|""")?[[:space:]]*$/, "", line)
	if (index(line, base " - ") == 1)
		line = substr(line, length(base) + 4)
	end = match(line, /\.( |$)/) ? RSTART : 0
	text = text (text == "" || line == "" ? "" : " ") (end ? substr(line, 1, end) : line)
	if (text != "" && (end || line == "")) {
		sub(/:$/, ".", text)
		if (text !~ /^see [a-z0-9_]+\.h\.$/)
			print name ": " text
		said = 1
	} else if (!comment && $0 != "") {
		end_file()
	}
}
END { end_file() }
