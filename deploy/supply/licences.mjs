// `npm run licences` lists the production packages of package-lock.json with their versions and licences. Exits with 1 if a licence
// is missing or not in AGREED.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Licences that only require their text to be kept. */
export const AGREED = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'BlueOak-1.0.0'];

/** Accepts `(A OR B)` if one licence is agreed and `(A AND B)` if all are. Refuses nested expressions. */
function isAgreed(expression) {
  const names = expression.replace(/^\((.*)\)$/, '$1');
  const agreed = (one) => AGREED.includes(one);
  return names.includes(' OR ') ? names.split(' OR ').some(agreed) : names.split(' AND ').every(agreed);
}

/** @returns {{ name: string, version: string, licence: string, isAgreed: boolean, isVerified: boolean }[]} sorted by name */
export function productionPackages(lock) {
  return Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path, { version, license, integrity }]) => ({
      name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
      version,
      licence: license ?? 'none',
      isAgreed: isAgreed(license ?? ''),
      isVerified: integrity !== undefined,
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = new URL('../../package-lock.json', import.meta.url);
  const packages = productionPackages(JSON.parse(readFileSync(file, 'utf8')));
  for (const { name, version, licence } of packages) console.log(`${`${name}@${version}`.padEnd(44)} ${licence}`);
  const refused = packages.filter(({ isAgreed }) => !isAgreed);
  for (const { name, licence } of refused) console.error(`${name}: its licence is not agreed: ${licence}`);
  process.exitCode = refused.length > 0 ? 1 : 0;
}
