"""The shell of a report: elements of HTML and SVG as templates. Text in them is escaped before."""

from __future__ import annotations

PAGE = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta http-equiv="Content-Security-Policy" content="{policy}">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<title>{title}</title><style>{style}</style></head><body>\n{content}{script}\n</body></html>\n"
)
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "script-src 'sha256-{digest}'"
)
BANNER = (
    '<div class="marked"><div class="mark"><p class="banner">{banner}</p></div>'
    '<div class="content">{content}</div></div>'
)
SCRIPT = "\n<script>{script}</script>"
STYLE_FILE, SCRIPT_FILE = "page.css", "area_tree.js"

TITLE = "<h1>{title}</h1>"
SECTION = "<section><h2>{title}</h2>\n{parts}</section>"
PARAGRAPH = "<p>{text}</p>"
CITATION = '<p class="cite">{text}</p>'
BULLETS = "<ul>{items}</ul>"
BULLET = "<li>{text}</li>"
PICTURE = '<figure><div class="wide">{svg}</div>{caption}</figure>'
CAPTION = "<figcaption>{text}</figcaption>"
TABLE = (
    '<div class="wide"><table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table></div>'
)
COLUMN = '<th scope="col">{name}</th>'
ROW = "<tr>{cells}</tr>"
CELL = "<td>{text}</td>"
LEVELS = (
    '<div class="wide"><table><thead><tr><th>{level}</th><th>{counted}</th><th>{table}</th></tr>'
    "</thead><tbody>{rows}</tbody></table></div>"
)
LINK = '<a href="{address}">{text}</a>'
GUIDE_LINK = "<p>{link}.</p>"
INTEREST = "<p>{links}: {text}</p>"
MICRODATA = "<p>{link}{text}</p>"
TOO_LARGE = "<p>Too large for this page: {links}.</p>"
NO_SCRIPT = "<noscript>{table}</noscript>"
DATA = '<script type="application/json" id="{name}">{content}</script>'
CONTROLS = """<div class="controls screen">
<label>Show <select id="measure"></select></label>
<label>Find an area
<input id="find" type="search" autocomplete="off" placeholder="its code"></label>
</div>
<ol id="found"></ol>
<div class="wide"><table id="tree"><thead><tr><th scope="col">area</th>
<th scope="col">published</th>
<th scope="col">{interval}</th>
<th scope="col" class="bar">compared with its neighbours</th></tr></thead>
<tbody></tbody></table></div>"""

# -- charts ---------------------------------------------------------------------------------------

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 36, 52
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
DASHES = ("", "7 4", "2 3", "9 3 2 3", "12 4", "4 2", "1 2")
LONGEST_NAME = 22

CHART = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" class="chart" '
    'role="img" aria-label="{title}" font-family="sans-serif" font-size="12">'
    '<rect width="100%" height="100%" fill="#fff"/>{parts}</svg>'
)
TEXT = '<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{text}</text>'
UPRIGHT = (
    '<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd" stroke-width="1"/>'
)
LEVEL_LINE = (
    '<line x1="{left}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}" stroke="#ddd" stroke-width="1"/>'
)
POINT = "{x:.1f},{y:.1f}"
LINE = '<polyline points="{points}" fill="none" stroke-width="2" {style}/>'
LINE_STYLE = 'stroke="{colour}" stroke-dasharray="{dashes}"'
LEGEND = '<line x1="{x}" y1="{y}" x2="{end}" y2="{y}" stroke-width="2" {style}/>'
BAR = '<rect x="{x}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
PAIRED_BAR = '<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="13" fill="{colour}"/>'
PAIRED_COLOURS = ("#999999", "#0072B2")
BEFORE_AND_AFTER = ("before", "after")

FLOW_SIZE, MOST_FLOW_AREAS, MOST_FLOW_ROWS = 640, 16, 20
FLOW_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#F0E442",
)  # fmt: skip
RIBBON = (
    '<path d="{path}" fill="none" stroke="{colour}" stroke-opacity="0.6" '
    'stroke-width="{width:.1f}"><title>{label}</title></path>'
)
CHORD = "M{x:.1f},{y:.1f} Q{middle},{middle} {u:.1f},{v:.1f}"
LOOP = "M{x:.1f},{y:.1f} C{a:.1f},{b:.1f} {c:.1f},{d:.1f} {u:.1f},{v:.1f}"
AREA_NAME = '<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{name}</text>'
CHORD_PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="-60 -10 760 660" role="img" '
    'aria-label="{title}" font-family="sans-serif" font-size="13">'
    '<rect x="-60" y="-10" width="100%" height="100%" fill="#fff"/>'
    '<circle cx="320.0" cy="320.0" r="230" fill="none" stroke="#ccc"/>{parts}</svg>'
)
