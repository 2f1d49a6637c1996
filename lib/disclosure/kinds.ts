import { z } from 'zod'

/** What is said of a change beside its patch. The order is that in which it is shown. */
export const disclosureKindSchema = z.enum([
  'check_configuration',
  'shadowed_module',
  'outside_link',
  'new_executable',
  'submodule',
  'git_attributes',
  'reordered_text',
])
export type DisclosureKind = z.infer<typeof disclosureKindSchema>

/** One thing that a reviewer has to know, in a sentence, with the changed paths that it is said of. */
export const disclosureSchema = z.strictObject({
  kind: disclosureKindSchema,
  paths: z.array(z.string()),
  text: z.string(),
})
export type Disclosure = z.infer<typeof disclosureSchema>
