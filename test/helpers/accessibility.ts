import axe, { type AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const BAD = ['serious', 'critical'];

/** What axe finds serious on the page as it stands, one line each: rule, what is wrong, where. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.evaluate(axe.source); // not as a script of the page: its policy forbids that
  const { violations } = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as AxeResults;
  return violations
    .filter(({ impact }) => BAD.includes(impact ?? ''))
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ target }) => target.join(' ')).join(', ')}`);
}
