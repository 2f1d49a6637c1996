/**
 * Characters that a person does not see, or that change what others look like: controls, marks of writing direction, blanks
 * of no width, fillers and tags. The joiners of emoji and of some scripts, and variation selectors, are not among them.
 */
const hidden =
  /[\p{Cc}\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/u

const all = new RegExp(hidden.source, 'gu')
const separators = /[\t\n\v\f\r\u0085\u2028\u2029]/g

/** Whether a text holds a character that `visible` would write out; line feeds and tabs are such ones too. */
export const hasHidden = (text: string): boolean => hidden.test(text)

/** Whether a text of any number of lines holds a control character, which no keyboard gives a person who writes one. */
export const hasControl = (text: string): boolean => /[^\P{Cc}\n\r\t]/u.test(text)

const named = (character: string): string =>
  `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}>`

/** A text as it may be shown: hidden characters are written as `<U+202E>`; line feeds and tabs stay. */
export const visible = (text: string): string =>
  text.toWellFormed().replace(all, (found) => (found === '\n' || found === '\t' ? found : named(found)))

/** A text as one line that may be shown: what ends a line or jumps in it is a space. */
export const oneLine = (text: string): string => visible(text.replace(separators, ' '))
