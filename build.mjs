// Bundles what runs: `npm run build`, and whoever starts the programs from a checkout. Plain JavaScript, so that it needs no loader.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const REPO_DIR = fileURLToPath(new URL('./', import.meta.url));
const DAY_MS = 86_400_000;

/**
 * Each bundle is a folder below `dist`, with its entry and the chunks that it imports, some of them later. src/core/package-root.ts
 * relies on that depth.
 */
const PROGRAMS = { folder: 'cli', entry: 'src/cli/main.ts' };
const LAUNCHER = { folder: 'local', entry: 'deploy/local/main.ts', sources: ['src', 'deploy/local'] };
/** Apart from the launcher, of which it needs very little. */
const POINTER = { folder: 'local-seckill', entry: 'deploy/local/seckill.ts', sources: LAUNCHER.sources };
/** Its packages stay outside: an app shares its own copies of them. */
const LIBRARY = { folder: 'library', entry: 'src/library/index.ts', packages: 'external' };
const CLIENT = { folder: 'client', entry: 'web/client/index.ts', sources: ['src', 'web/client'] };
const PRODUCT = [PROGRAMS, LIBRARY, CLIENT];

/** Edits of package files that the bundle needs. The build fails if an edit no longer matches its file. */
const PATCHES = [
  {
    // the programs speak to MySQL only
    file: /\/knex\/lib\/dialects\/index\.js$/,
    find: /^ {2}(?!mysql2:)\S+: \(\) => require.*\n/gm,
    replace: '',
  },
  {
    // it looks for its version in a file beside it
    file: /\/rocketmq-client-nodejs\/dist\/client\/UserAgent\.js$/,
    find: /JSON\.parse\(.*__dirname, '\.\.\/\.\.\/package\.json'\), 'utf-8'\)\)/,
    replace: "require('../../package.json')",
  },
  {
    // native code, which no bundle can hold; Node has the same function
    file: /\/rocketmq-client-nodejs\/dist\/util\/index\.js$/,
    find: '@node-rs/crc32',
    replace: 'node:zlib',
  },
  {
    // the programs show messages in English only
    file: /\/zod\/v4\/(classic\/external|core\/index)\.js$/,
    find: 'export * as locales from "../locales/index.js";',
    replace: '',
  },
];
const patches = {
  name: 'patches',
  setup({ onLoad }) {
    for (const { file, find, replace } of PATCHES) {
      onLoad({ filter: file }, ({ path }) => {
        const text = readFileSync(path, 'utf8');
        const contents = text.replace(find, replace);
        return contents === text
          ? { errors: [{ text: `${path} has changed: correct PATCHES in build.mjs` }] }
          : { contents };
      });
    }
  },
};

/**
 * Keeps one mapping per line, and none of packages. Node parses the map of a whole chunk when it first prints the stack of
 * an error, while everything else waits, and keeps the result on its heap.
 */
function thinMap(text, { decode, encode }) {
  const map = JSON.parse(text);
  const isOwn = map.sources.map((source) => !source.includes('node_modules/'));
  let isMapped = false;
  const lines = decode(map.mappings).map((segments) => {
    const [, source, line] = segments.find((segment) => isOwn[segment[1]]) ?? [];
    const wasMapped = isMapped;
    isMapped = source !== undefined;
    if (isMapped) return [[0, source, line, 0]];
    return wasMapped ? [[0]] : []; // a position without a source: otherwise the mapping of the line before holds
  });
  return JSON.stringify({ ...map, mappings: encode(lines) });
}

/** CommonJS inside of a module: packages call `require` of what is built in. */
const REQUIRE = "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

/**
 * Chunks are written before the entry that names them, and stay for a day: a program of an earlier build may still import one.
 * @throws Error with a sentence when the sources do not compile
 */
async function bundle({ folder, entry, packages = 'bundle' }, { dist = join(REPO_DIR, 'dist'), plugins = [] } = {}) {
  const [{ build }, codec] = await Promise.all([import('esbuild'), import('@jridgewell/sourcemap-codec')]);
  const startedAt = new Date();
  const outdir = join(dist, folder);
  const { outputFiles } = await build({
    absWorkingDir: REPO_DIR,
    entryPoints: [entry],
    outdir,
    entryNames: '[name]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    packages,
    external: ['mysql'], // knex asks for it where it is told no other driver
    // esbuild finds no parts of the main file of jsonc-parser
    alias: packages === 'bundle' ? { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' } : {},
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    banner: packages === 'bundle' ? { js: REQUIRE } : {},
    sourcemap: true,
    sourcesContent: false,
    plugins: [...plugins, patches],
    write: false,
    logLevel: 'warning',
  }).catch((cause) => {
    throw new Error('The sources do not compile: the lines above say where.', { cause });
  });
  mkdirSync(outdir, { recursive: true });
  const isEntry = ({ path }) => basename(path, '.js') === basename(entry, '.ts');
  for (const file of [...outputFiles.filter((file) => !isEntry(file)), ...outputFiles.filter(isEntry)]) {
    const { path } = file;
    const contents = path.endsWith('.map') ? thinMap(file.text, codec) : file.contents;
    writeFileSync(`${path}.${process.pid}`, contents);
    renameSync(`${path}.${process.pid}`, path);
    utimesSync(path, startedAt, startedAt); // a source that changes during the build is newer
  }
  const written = new Set(outputFiles.map(({ path }) => path));
  for (const path of readdirSync(outdir).map((name) => join(outdir, name))) {
    if (/\.js(\.map)?$/.test(path) && !written.has(path) && startedAt - statSync(path).mtime > DAY_MS) rmSync(path);
  }
}

/** `dist/cli`. */
export const bundlePrograms = (options) => bundle(PROGRAMS, options);

/** Bundles run one after the other: esbuild uses all cores, and reports an error in a source once. */
async function bundleAll(bundles) {
  for (const one of bundles) await bundle(one);
}

/**
 * Bundles the product, and what starts it on this machine, where the sources are newer.
 * @throws Error with a sentence when they do not compile
 */
export async function bundleIfOlder() {
  const older = [...PRODUCT, LAUNCHER, POINTER].filter(isOlder);
  if (older.length === 0) return;
  console.error('Building the programs, since their sources are newer …');
  await bundleAll(older);
}

/** Whether a source, or a package, was changed after the bundle was made. */
function isOlder({ folder, entry, sources = ['src'] }) {
  const file = join(REPO_DIR, 'dist', folder, `${basename(entry, '.ts')}.js`);
  if (!existsSync(file)) return true;
  const others = ['build.mjs', 'node_modules/.package-lock.json'].map((name) => join(REPO_DIR, name));
  return newestMs([...others, ...sources.map((source) => join(REPO_DIR, source))]) > statSync(file).mtimeMs;
}

/** The newest change of these files, and of all in these folders, Unix ms. */
function newestMs(paths) {
  const times = paths.map((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat?.isDirectory()) return stat?.mtimeMs ?? 0;
    return Math.max(stat.mtimeMs, newestMs(readdirSync(path).map((name) => join(path, name))));
  });
  return Math.max(0, ...times);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await bundleAll(PRODUCT).catch(({ message }) => {
    console.error(message);
    process.exitCode = 1;
  });
}
