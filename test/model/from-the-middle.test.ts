import { walkFrom } from './walks.ts'

walkFrom(['Code', 'Validate', 'Review', 'Deliver'], 100)
