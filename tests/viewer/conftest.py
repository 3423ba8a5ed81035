"""Pages of each scene in a browser, at the width of a desktop and of a phone."""

import pytest

from browser import PHONE, WIDE, Page, served
from view_scenes import SCENES

WINDOWS = [(name, size) for name in SCENES for size in (WIDE, PHONE)]


@pytest.fixture(scope="module", params=WINDOWS, ids=[f"{name}-{size.width}" for name, size in WINDOWS])
def opened(request, browser):
    """Return the name of a scene and its page; a low density is drawn in a tenth of the time."""
    name, size = request.param
    page = Page(browser, served(name).url, size, density=0.3)
    yield name, page
    assert not page.foreign()
    page.close()
