/** What was stored came from elsewhere: it must not steer the terminal. */
export const printable = (text: string): string => text.replace(/[^\P{C}\n]/gu, '\ufffd');
