# SPDX-License-Identifier: BSD-3-Clause
# cmake -DPAGE=dir -DOUTPUT=file.cpp -P embed.cmake: the page's files as constants, the scripts one after another.
set(script "")
foreach(name data geometry view details search input)
  file(READ ${PAGE}/${name}.js text)
  string(APPEND script "${text}")
endforeach()
file(READ ${PAGE}/page.html frame)
file(READ ${PAGE}/style.css style)
file(WRITE ${OUTPUT} "#include \"topo/draw/page.hpp\"\n\nnamespace banyan::topo::draw::page {\n")
foreach(name frame style script)
  file(APPEND ${OUTPUT} "const std::string_view ${name} = R\"~page~(${${name}})~page~\";\n")
endforeach()
file(APPEND ${OUTPUT} "}\n")
