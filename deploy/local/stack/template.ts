import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Bug } from '../../../src/core/errors.js';
import { TEMPLATES_DIR } from './paths.js';

/** Replaces each `${name}`. A name without a value is a mistake of ours, not of the user. */
export function renderTemplate(template: string, values: Readonly<Record<string, string | number>>): string {
  return template.replace(/\$\{(\w+)\}/g, (_match, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Bug(`the template asks for ${name}, which nobody gave`);
    return String(value);
  });
}

/** RocketMQ reads its .conf files as Java properties: Latin-1, with a backslash as escape character. */
export function escapeProperty(value: string): string {
  return value
    .replaceAll('\\', '\\\\')
    .replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Fills in a file of deploy/local and puts it where its server reads it. */
export function writeConf(template: string, target: string, values: Readonly<Record<string, string | number>>): void {
  const rendered = renderTemplate(readFileSync(join(TEMPLATES_DIR, template), 'utf8'), values);
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, rendered);
}
