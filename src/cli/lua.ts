import { Command } from 'commander';
import { readScripts } from '../redis/scripts.js';
import { CliError } from '../process/cli-error.js';
import { print } from '../process/print.js';

export function luaCommand(): Command {
  return new Command('lua')
    .description('list the Redis scripts with their SHA1, or print one as Redis runs it')
    .argument('[name]', 'a script, such as deduct')
    .action(printScripts);
}

function printScripts(name: string | undefined): void {
  const scripts = readScripts();
  if (name === undefined) {
    for (const { sha1, name: each } of scripts) print(`${sha1}  ${each}`);
    return;
  }
  const script = scripts.find((one) => one.name === name);
  if (!script) throw new CliError(`There is no script ${name}. \`seckill lua\` lists them.`);
  print(`-- SHA1 ${script.sha1}, ${script.numberOfKeys} keys\n${script.text.trimEnd()}`);
}
