"""Renders page.txt as page.png, and page.png as photo.jpg: the same page photographed badly.

    python3 -m venv .venv && .venv/bin/pip install -r requirements.txt
    .venv/bin/python prepare.py

Paragraphs are parted by empty lines and take their styles from STYLES in turn. The photograph is the page on a table:
seen from one side, in uneven light with a shadow, out of focus, with sensor noise, as JPEG. Both come out the same each time.
"""
from pathlib import Path

import numpy as np
from font_source_sans_pro import SourceSansProSemibold
from font_source_serif_pro import SourceSerifPro, SourceSerifProBold
from PIL import Image, ImageDraw, ImageFilter, ImageFont

HERE = Path(__file__).resolve().parent
SEED = 1815
PAGE = (1000, 1320)
MARGIN = 76
INK, PAPER = 24, 252

# Font, size and the space above, in pixels.
TITLE = (SourceSerifProBold, 54, 0)
HEADING = (SourceSansProSemibold, 34, 34)
BODY = (SourceSerifPro, 30, 22)
SMALL = (SourceSansProSemibold, 22, 40)
STYLES = [TITLE, BODY, HEADING, BODY, BODY, HEADING, BODY, SMALL]
LINE_HEIGHT = 1.42

PHOTO = (1180, 1480)
# Where the page's corners are in the photograph, clockwise from the top left.
CORNERS = [(112, 78), (1070, 132), (1118, 1394), (54, 1352)]
FOCUS = 0.9
NOISE = 5.0
JPEG_QUALITY = 72


def render(paragraphs):
    """The page in shades of grey."""
    page = Image.new("L", PAGE, PAPER)
    draw = ImageDraw.Draw(page)
    y = MARGIN
    for paragraph, (path, size, above) in zip(paragraphs, STYLES, strict=True):
        font = ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)
        y += above
        for line in paragraph.split("\n"):
            width = draw.textlength(line, font=font)
            if MARGIN + width > PAGE[0] - MARGIN / 2:
                raise SystemExit(f"line too long by {MARGIN * 1.5 + width - PAGE[0]:.0f} pixels: {line}")
            draw.text((MARGIN, y), line, font=font, fill=INK)
            y += round(size * LINE_HEIGHT)
    if y > PAGE[1] - MARGIN / 2:
        raise SystemExit(f"page too long by {y - PAGE[1] + MARGIN / 2:.0f} pixels")
    return page


def perspective(source, target):
    """Coefficients of the map that takes `target` points to `source` points, as Image.transform wants them."""
    rows, values = [], []
    for (u, v), (x, y) in zip(source, target, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    return np.linalg.solve(np.array(rows, float), np.array(values, float))


def light():
    """How bright each place of the photograph is: falling off to the lower right, with the shadow of a hand."""
    y, x = np.mgrid[0 : PHOTO[1], 0 : PHOTO[0]] / max(PHOTO)
    falling = 1.04 - 0.30 * x - 0.22 * y
    shadow = 1 / (1 + np.exp(-(x + 0.55 * y - 1.02) * 22))
    return falling * (1 - 0.26 * shadow)


def table(random):
    """A wooden table: brown stripes with some noise."""
    x = np.arange(PHOTO[0])
    stripes = 12 * np.sin(x / 23 + 2 * np.sin(x / 91)) + random.normal(0, 5, PHOTO[0])
    grain = random.normal(0, 4, (PHOTO[1], PHOTO[0]))
    return np.stack([tone + stripes + grain for tone in (128, 92, 64)], axis=-1)


def photograph(page):
    """The page as a bad camera sees it."""
    random = np.random.default_rng(SEED)
    width, height = PAGE
    corners = [(0, 0), (width, 0), (width, height), (0, height)]
    view = dict(size=PHOTO, method=Image.Transform.PERSPECTIVE, data=perspective(corners, CORNERS), resample=Image.Resampling.BICUBIC)
    seen = np.asarray(page.transform(**view), float)[..., None] * [1.0, 0.985, 0.94]
    covered = np.asarray(Image.new("L", PAGE, 255).transform(**view), float)[..., None] / 255
    scene = (covered * seen + (1 - covered) * table(random)) * light()[..., None]
    blurred = Image.fromarray(np.clip(scene, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(FOCUS))
    noisy = np.asarray(blurred, float) + random.normal(0, NOISE, (PHOTO[1], PHOTO[0], 1)) + random.normal(0, NOISE / 3, (PHOTO[1], PHOTO[0], 3))
    return Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8))


def main():
    page = render((HERE / "page.txt").read_text().strip().split("\n\n"))
    page.quantize(16, dither=Image.Dither.NONE).save(HERE / "page.png", optimize=True)
    photograph(page).save(HERE / "photo.jpg", quality=JPEG_QUALITY, optimize=True)


if __name__ == "__main__":
    main()
