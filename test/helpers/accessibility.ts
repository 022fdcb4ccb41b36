import type { AxeResults, RunOptions } from 'axe-core';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const BAD = ['serious', 'critical'];

/** Rules for other colours, windows and languages of a page that was already fully checked. */
export const OF_COLOURS: readonly string[] = ['color-contrast'];
export const OF_WIDTH: readonly string[] = ['color-contrast', 'scrollable-region-focusable', 'target-size'];
export const OF_LANGUAGE: readonly string[] = [
  'cat.forms',
  'cat.language',
  'cat.name-role-value',
  'cat.text-alternatives',
];

/**
 * Returns the serious axe findings on the current page, one line each: rule, problem, place.
 * @param only these rules, or rules with these tags; defaults to all rules that are on by default
 */
export async function accessibilityFaults(page: Page, only?: readonly string[]): Promise<string[]> {
  // as text, because the page policy forbids a script element, and once per document, because it is long
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(SOURCE);
  const options: RunOptions = {
    resultTypes: ['violations'],
    preload: false, // loads no external styles, because the pages use none
    ...(only === undefined ? {} : { runOnly: [...only] }),
  };
  const { violations } = (await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`)) as AxeResults;
  return violations
    .filter(({ impact }) => BAD.includes(impact ?? ''))
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}
