import { Pages } from '../../src/http/pages.js';

/** For listeners of tests that request no page. */
export const NO_PAGES = { buyers: Pages.none(), operators: Pages.none() };
