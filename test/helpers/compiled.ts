import ts from 'typescript';

/** As tsconfig.build.json has it; a file is compiled alone, so its types are not checked. */
const COMPILER_OPTIONS = { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext, verbatimModuleSyntax: true };

/** The JavaScript of a file. */
export const compiled = (text: string): string =>
  ts.transpileModule(text, { compilerOptions: COMPILER_OPTIONS }).outputText;
