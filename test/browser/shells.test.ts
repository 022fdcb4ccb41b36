import { expect } from 'chai';
import { startChromium, type StartedBrowser } from '../helpers/chromium.js';
import { accessibilityFaults } from '../helpers/accessibility.js';
import { useSystem } from '../helpers/system.js';
import type { Program } from '../chaos/harness/programs.js';

describe('the console in a browser', () => {
  let api: Program;
  let started: StartedBrowser;
  useSystem(async ({ programs }) => {
    [api, started] = await Promise.all([programs.start('api'), startChromium()]);
  });
  after(() => started.close());

  it('loads and runs under its content security policy', async () => {
    const page = await started.browser.newPage();
    const wrong: string[] = [];
    page.on('console', (message) => void (message.type() === 'error' && wrong.push(message.text())));
    page.on('pageerror', (error) => void wrong.push(error.message));
    page.on('requestfailed', (asked) => void wrong.push(asked.url()));
    await page.goto(`${api.operatorsUrl}/console`);
    await page.locator('h1').waitFor();
    expect(await accessibilityFaults(page)).to.deep.equal([]);
    expect(wrong).to.deep.equal([]);
    await page.close();
  });
});
