import { Pages } from '../../src/http/pages.js';

/** For listeners whose test asks for no page. */
export const NO_PAGES = { buyers: Pages.none(), operators: Pages.none() };
