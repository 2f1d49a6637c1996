import { walkFrom } from './walks.ts'

walkFrom(['Admit', 'Confirm', 'Code'], 100)
