# SPDX-License-Identifier: BSD-3-Clause
# A figure of a report. Its colours are rgb(0, 1, n), which nobody uses: report_figure.c makes
# variables of the style sheet of them. Built into nbar.
set terminal svg size {{width}},{{height}} dynamic noenhanced font 'sans-serif,{{font}}' dashlength 0.6
set encoding utf8
set border 3 lw 1
set tics nomirror out scale 0.5
set grid lt 1 lw 0.7 lc rgb '#000100'
set key noenhanced
set xlabel '{{x_label}}' noenhanced
set ylabel '{{y_label}}' noenhanced
{{#is_log_x}}
set logscale x 2
{{/is_log_x}}
{{#is_log_y}}
set logscale y 10
{{/is_log_y}}
{{#has_points}}
set offsets graph 0.03, graph 0.03, 0, 0
{{/has_points}}
{{#is_wide}}
set key outside right top Left reverse samplen 3
{{/is_wide}}
{{#is_narrow}}
set key outside bottom center horizontal Left reverse samplen 2
{{/is_narrow}}
{{#has_x_places}}
set xrange [-0.5:{{x_last}}.5]
set xtics ({{x_places}})
{{/has_x_places}}
{{#is_crowded}}
set xtics rotate by -35
{{/is_crowded}}
{{#from_zero}}
set yrange [0:]
{{/from_zero}}
{{data}}
{{#is_heat}}
set yrange [-0.5:{{y_last}}.5]
set ytics ({{y_places}})
unset grid
unset key
set tics scale 0
{{#fields}}
set object rect from {{x}}-0.5,{{y}}-0.5 to {{x}}+0.5,{{y}}+0.5 fc rgb '#000101' fs transparent solid {{share}} noborder behind
set label '{{value}}' at {{x}},{{y}} center noenhanced
{{/fields}}
plot NaN notitle
{{/is_heat}}
{{#is_bars}}
plot {{#lines}}{{comma}}$d{{number}} using ($1{{shift}}):2:({{bar_width}}) with boxes fs solid 0.85 noborder lw 1 lc rgb '#0001{{colour}}' title '{{title}}'{{/lines}}
{{/is_bars}}
{{#is_lines}}
plot {{#lines}}{{comma}}$d{{number}} using 1:2 with linespoints lw {{line_width}} dt {{dash}} pt {{point}} ps {{point_size}} lc rgb '#0001{{colour}}' title '{{title}}'{{/lines}}{{points}}
{{/is_lines}}
