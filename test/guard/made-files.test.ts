import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { REPO_DIR } from '../../deploy/local/stack/paths.js';
import { renderConfigDocs } from './config-docs.js';
import { renderDoctorDocs } from './doctor-docs.js';
import { renderHelmSettings } from './helm-settings.js';
import { renderSizingDocs, SIZING_PAGE } from './sizing-docs.js';

/** The generated files in git, each with the function that generates it. */
const MADE: Readonly<Record<string, () => string | Promise<string>>> = {
  'docs/configuration.md': renderConfigDocs,
  'docs/doctor.md': renderDoctorDocs,
  [SIZING_PAGE]: renderSizingDocs,
  'deploy/helm/seckill/settings.yaml': renderHelmSettings,
};

describe('guard: generated files', () => {
  for (const [path, make] of Object.entries(MADE)) {
    it(`${path} is up to date`, async () => {
      const [file, made] = [join(REPO_DIR, path), await make()];
      if (process.env.UPDATE) writeFileSync(file, made);
      else expect(readFileSync(file, 'utf8') === made, 'out of date, run: npm run generate').to.equal(true);
    });
  }
});
