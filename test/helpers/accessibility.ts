import type { AxeResults, RunOptions } from 'axe-core';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const BAD = ['serious', 'critical'];

/** What else can go wrong on a page that was looked at as a whole, once it is seen in other colours, a narrower window or another language. */
export const OF_COLOURS: readonly string[] = ['color-contrast'];
export const OF_WIDTH: readonly string[] = ['color-contrast', 'scrollable-region-focusable', 'target-size'];
export const OF_LANGUAGE: readonly string[] = [
  'cat.forms',
  'cat.language',
  'cat.name-role-value',
  'cat.text-alternatives',
];

/**
 * What axe finds serious on the page as it stands, one line each: rule, what is wrong, where.
 * @param only these rules, or rules with these tags; left out: all that are on by default
 */
export async function accessibilityFaults(page: Page, only?: readonly string[]): Promise<string[]> {
  // not as a script of the page: its policy forbids that; and once for each document, since it is long
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(SOURCE);
  const options: RunOptions = {
    resultTypes: ['violations'],
    preload: false, // of styles from elsewhere, and there are none
    ...(only === undefined ? {} : { runOnly: [...only] }),
  };
  const { violations } = (await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`)) as AxeResults;
  return violations
    .filter(({ impact }) => BAD.includes(impact ?? ''))
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}
