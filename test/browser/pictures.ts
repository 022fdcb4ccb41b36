import { copyFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Page } from 'playwright-core';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';

/**
 * `UPDATE_PICTURES=1` takes a picture of every state in every look, and refreshes the pictures of the documentation.
 */
export const TAKES_PICTURES = process.env.UPDATE_PICTURES === '1';

/** Holds all pictures. Git ignores it. */
const FOLDER = join(REPO_DIR, '.stack/pictures');

/** The pictures that the documentation shows, as paths below `docs`. */
export const PICTURES_IN_DOCS: readonly string[] = [
  'buyer-page/on-sale-desktop.png',
  'buyer-page/to-pay-desktop.png',
  'buyer-page/waiting-room-desktop.png',
  'console/dead-letters-light.png',
  'console/live-light.png',
  'console/purchase-light.png',
  'console/reconcile-light.png',
  'console/sale-light.png',
];

/** Writes a picture of the current page. */
export async function takePicture(page: Page, name: string): Promise<void> {
  const path = join(FOLDER, name);
  mkdirSync(dirname(path), { recursive: true });
  await page.screenshot({ path, animations: 'disabled' });
  if (PICTURES_IN_DOCS.includes(name)) copyFileSync(path, join(REPO_DIR, 'docs', name));
}
